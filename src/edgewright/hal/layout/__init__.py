"""Where fields lie: layouts, several ways to find them, what they cost, and the judge of all (S 6.4.4)."""
