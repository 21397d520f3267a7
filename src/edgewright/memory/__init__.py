"""Order of steps, lifetimes, addresses, in-place and overlapping buffers."""
