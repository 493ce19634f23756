"""Kinds of `nodus.dev/v1`: reading, checking and comparing what people write. No I/O."""
