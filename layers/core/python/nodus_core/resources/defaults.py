"""What holds where a spec says nothing; applied when a run is admitted, never stored with the agent."""

DEFAULT_COST = "1.00"
DEFAULT_TOOL_CALLS = 50
DEFAULT_FOLDER = "/workspace"
DEFAULT_EGRESS = "Deny"
DEFAULT_IMAGE = "nodus/agent-tools"
