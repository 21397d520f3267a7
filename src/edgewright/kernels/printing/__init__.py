"""Printing C: lines and blocks, expressions, loop nests, and constants in flash."""
