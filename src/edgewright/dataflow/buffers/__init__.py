"""The memory of a graph: least capacities, schedules, peak occupancy."""
