"""Runs deployments on this machine: native parts or other runtimes, FIFOs whose slots are the buffers, statistics.

Small devices load `pipeline` and the modules below it, which need numpy and pydantic only; `build` and `profiling`
compile, and need the rooms below.
"""
