"""Plain loops, printed for each layer: any type, any arithmetic, any region. Every family falls back on them."""
