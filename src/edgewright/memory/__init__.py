"""Order of steps, lifetimes, addresses; views, in-place and overlapping buffers; plans made of them."""
