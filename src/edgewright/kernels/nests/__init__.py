"""Plain loops, printed for the layer at hand: any type, any arithmetic, any region. The last resort of every family."""
