"""The genetic search for a mapping of the paper (M 3.4), to compare with; no plan uses it by default."""
