"""C as kernels are called in: lines, expressions, loops, tensors as C sees them, constants in flash."""
