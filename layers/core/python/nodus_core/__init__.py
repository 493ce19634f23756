"""Server side of Nodus: a pure kernel, the journal, capabilities, and the adapters at the edge."""

RELEASE = "0.1.0"
"""The release; pyproject.toml says the same, and a test compares them."""
