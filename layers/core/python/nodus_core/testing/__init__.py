"""The test kit: in-memory ports, a settable clock, crash points. Used by our own tests instead of patching."""
