"""What driver code does with its fields: accesses, control flow, conflicts, regions, and spaces of slots (S 6.4)."""
