"""The verbs with their options and help. Nothing here takes long to load."""
