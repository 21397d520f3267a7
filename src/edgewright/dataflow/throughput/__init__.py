"""How fast a graph runs: self-timed execution, cycle ratios, latency, and what buffers cost in throughput."""
