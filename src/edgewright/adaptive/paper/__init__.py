"""The paper's model of switching (M 5.7 to 5.9), for analysis only: supergraph, protocol, memory."""
