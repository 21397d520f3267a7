"""Kernels for cores with pairs of 16-bit products (Cortex-M4, M7, M33)."""
