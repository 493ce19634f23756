"""Nodus: run AI agents as durable, exactly-once work."""
