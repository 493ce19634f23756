"""Interactive terminals: shells on pseudo-terminals, which people watch and type into through the bell."""
