"""The media types of bodies."""

JSON = "application/json"
TEXT = "text/plain"
BYTES = "application/octet-stream"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
