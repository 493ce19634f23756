"""Who may do what: bearer keys, organizations, projects, permissions."""
