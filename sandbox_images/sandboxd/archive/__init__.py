"""The daemon's own safe reader and writer of archives (docs/decisions/0023)."""
