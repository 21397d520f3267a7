"""What runs where plans are made: keys of a cluster, and the coordinator of its devices."""
