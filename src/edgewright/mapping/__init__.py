"""Layers on the processors of one board: pipelines, replicas and lanes, and what no mapping can exceed."""
