"""Whether a graph can run at all: consistent rates, no deadlock, and why not."""
