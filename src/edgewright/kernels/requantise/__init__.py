"""From exact sums to stored bytes: multipliers that are proven to store what the reference stores."""
