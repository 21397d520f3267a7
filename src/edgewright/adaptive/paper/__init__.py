"""The paper's model of switching (M 5.7 to 5.9), for analysis alone: supergraph, protocol, memory. Nothing runs it."""
