"""The paper's own way (M 6.5): an edge for each pair of layers, buffers reused greedily, layers by parts."""
