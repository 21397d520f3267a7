"""A common layout for the plans of a deployment on one device: conflicts between buffers, addresses, memories."""
