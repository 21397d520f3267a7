"""Kernels for the vectors of a host or an application processor."""
