"""Conversations: admission, the worker that advances a line, kicks, and what people read of it."""
