"""What runs on each device of a cluster. It needs Python's own library, msgspec and cryptography, and nothing else."""
