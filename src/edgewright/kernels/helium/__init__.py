"""Kernels for M-profile vectors (Cortex-M55)."""
