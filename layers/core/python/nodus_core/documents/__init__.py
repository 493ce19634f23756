"""What the API says of itself: discovery for kubectl, OpenAPI 2, 3.0 and 3.1; all of it derived from the kinds."""
