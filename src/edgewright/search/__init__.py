"""Architecture search: candidates for a board, what each needs there, and the front of the best."""
