"""The paper's own method (M 6.5): an edge for each pair of layers, buffers reused greedily, layers run by parts."""
