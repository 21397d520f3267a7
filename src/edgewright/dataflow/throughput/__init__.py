"""The speed of a graph: self-timed execution, cycle ratios, latency, and buffers against throughput."""
