"""Scenarios of one application that switch at run time: the file, the paper's model, transitions, rules."""
