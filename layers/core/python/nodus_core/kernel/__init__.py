"""The graph kernel: objects, allowed transitions, decisions, projections. No I/O, no clock, no randomness."""
