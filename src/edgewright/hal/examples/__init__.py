"""Drivers in the language of bit field groups, each with a model of its peripheral."""
