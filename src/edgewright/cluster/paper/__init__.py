"""The methods of the papers on several devices (S 5 and T), by the papers' own countings: to compare ours with."""
