"""Scenarios that switch at run time: the file, the paper's model, transitions between scenarios, rules."""
