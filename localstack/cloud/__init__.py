"""The emulated AWS: MiniStack's ASGI application, closed, durable and with Lambda workers of our own."""
