"""Whether a graph can run: consistent rates, no deadlock, and the reason if not."""
