"""The language of drivers: groups and fields, what their attributes mean, and what a source may not do (S 6.3)."""
