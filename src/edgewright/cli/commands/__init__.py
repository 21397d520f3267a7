"""The verbs as the command line knows them: options and help, and nothing that takes long to load."""
