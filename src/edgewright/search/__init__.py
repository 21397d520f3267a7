"""Architecture search: spaces of candidates, what each costs on a board, training, and the front."""
