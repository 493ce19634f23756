"""The daemon inside a sandbox: runs commands, dials out to the control plane (docs/protocols.md §2)."""
