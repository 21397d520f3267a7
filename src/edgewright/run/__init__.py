"""Deployments on this machine: native parts or other runtimes, FIFOs whose slots are the buffers, statistics.

Small devices load what executes (`pipeline` and below), which takes numpy and pydantic alone; `build` and `profiling`
compile, and take the rooms below.
"""
