"""How much memory a graph needs: least capacities, schedules, peak occupancy."""
