"""The whole design flow: from data and requirements to a verified application on a board."""
