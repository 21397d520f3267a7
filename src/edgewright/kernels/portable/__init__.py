"""Kernels in plain C for small cores."""
