"""How an image is made of a base and a setup: the Dockerfile, and the setup as no shell can misread it."""

import base64
import gzip

MOST_PACKED = 20_000
"""Characters of a packed setup. A build's whole specification may have 25,600 (CodeBuild)."""

SETUP_AT = "/run/nodus-setup"
"""Where the setup stands while it is run; it is no part of the image."""


def packed(text: str) -> str:
    """A text compressed, in letters, digits, `+`, `/` and `=` alone; the same text gives the same again."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def dockerfile(base: str) -> str:
    """The Dockerfile of an image that starts from `base`, a reference with a digest as `Reference.at` writes it.

    The setup is run by `/bin/sh`, as root, with the build's network. Who runs what in a sandbox of the image is said
    when that is started, whatever the image says.
    """
    return f"FROM {base}\nUSER 0:0\nWORKDIR /\nRUN --mount=type=bind,source=setup,target={SETUP_AT} /bin/sh {SETUP_AT}\n"
