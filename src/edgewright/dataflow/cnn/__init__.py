"""CNNs as dataflow graphs: phases, rates, mappings (M 3.5, M 4.5, B)."""
