"""Maps layers to the processors of one board: pipelines, replicas and lanes, with an upper bound for all mappings."""
