"""edgewright: runs trained CNNs on small hardware in the least memory, with proof."""
