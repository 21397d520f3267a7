"""Several CNNs in one memory: which of their buffers may meet, where all of them lie, and what that costs whom."""
