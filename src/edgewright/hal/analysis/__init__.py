"""Analysis of driver code: accesses to fields, control flow, conflicts, access regions, and spaces of slots (S 6.4)."""
