"""Runs commands and ends their process trees. Standard library only, and nothing about HTTP."""
