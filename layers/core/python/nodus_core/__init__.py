"""Server side of Nodus: a pure kernel, the journal, capabilities, and the adapters at the edge."""
