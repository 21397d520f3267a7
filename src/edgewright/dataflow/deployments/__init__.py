"""Deployments as graphs: how fast workers run that wait for each other's frames and rows."""
