"""Instructions that calls and plans take: what kernels say they do, times coefficients that were counted."""
