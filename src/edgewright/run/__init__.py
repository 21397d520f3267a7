"""Deployments on this machine: native parts or other runtimes, FIFOs whose slots are the buffers, statistics.

Small devices load what executes (`pipeline` and below), which takes numpy and the standard library alone; `build`
and `profiling` compile, and take the rooms below.
"""
