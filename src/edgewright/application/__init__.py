"""Several CNNs in one memory: conflicts between their buffers, one layout for all, and the cost for each network."""
