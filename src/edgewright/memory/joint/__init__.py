"""One layout for the plans of a deployment on one device: conflicts between their buffers, addresses, memories."""
