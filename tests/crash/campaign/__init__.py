"""A randomized campaign of kills over the deployed local cloud: `make crash`."""
