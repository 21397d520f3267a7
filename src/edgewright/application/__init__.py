"""Several CNNs in one memory: which of their buffers conflict, one layout for all, and what that costs each network."""
