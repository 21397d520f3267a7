"""Deployments as graphs: the speed of workers that wait for each other's frames and rows."""
