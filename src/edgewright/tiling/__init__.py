"""Which parts, where: how a network is cut into stretches, tiles and rows, and what that costs."""
