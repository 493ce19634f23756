"""The journal: its store port, its rows, and one method per commit. No I/O of its own."""
