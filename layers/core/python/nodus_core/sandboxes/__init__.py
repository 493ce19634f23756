"""Sandboxes: the tools that a model has in one, their commands, and the daemon's side of the link."""
