"""The paper's method (M 6.5): an edge for each pair of layers, greedy reuse of buffers, layers run by parts."""
