"""Register layouts: data, several methods to find one, the cost model, and the judge of all (S 6.4.4)."""
