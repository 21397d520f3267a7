"""Architecture search: candidates, their characteristics, fronts, selection."""
