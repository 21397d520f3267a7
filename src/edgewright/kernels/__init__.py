"""How steps are computed on a target: kernels as values, what they take and cost, the C that calls them."""
