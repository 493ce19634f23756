"""Labels as Kubernetes has them: `PREFIX/NAME` or `NAME`, and values of at most 63 characters."""

import re

from nodus_core.resources.fields import LONGEST_LABEL, is_name

_VALUE = re.compile(rf"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,{LONGEST_LABEL - 2}}}[A-Za-z0-9])?)?")


def is_label_key(text: str) -> bool:
    """Whether `text` may name a label: a name, perhaps below a DNS prefix."""
    prefix, slash, name = text.rpartition("/")
    return bool(name) and is_label_value(name) and (not slash or is_name(prefix))


def is_label_value(text: str) -> bool:
    """Whether `text` may be a label's value; the empty one may."""
    return _VALUE.fullmatch(text) is not None
