"""A daemon for the launcher's tests: it guards secrets as the real one does, and runs what tests ask for."""
