"""Who pays, and how much may be spent: budgets, credits, the slices that they hand to runs."""
