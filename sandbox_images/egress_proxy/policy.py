"""An egress policy: which hosts and ports a sandbox may reach."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

ALLOW_LIST = "AllowList"
OPEN = "Open"
WEB_PORTS = (80, 443)
"""Ports that are meant where none is named."""

_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)

Place = tuple[str, int]
"""Host (as `canonical` writes it, or an address) and port."""


def canonical(host: str) -> str | None:
    """A host as policies compare it: lower case, without a dot at the end; None when it is neither a name nor an
    address in its usual spelling. What C libraries also read as an address (`0x7f.1`, `2852039166`) is neither."""
    text = host.lower().removesuffix(".")
    if _NAME.fullmatch(text):
        return text
    try:
        return str(ipaddress.ip_address(text)) if "%" not in text else None
    except ValueError:
        return None


@dataclass(frozen=True)
class Rule:
    """One entry of an allow list. `port` None: the web's ports, and only what a browser speaks there."""

    host: str
    below: bool = False
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """`HOST`, `*.HOST` (what lies below it, not itself), either with `:PORT`.

        Raises:
            ValueError: it is none of these.
        """
        name, _, port = text.partition(":")
        below = name.startswith("*.")
        host = canonical(name.removeprefix("*."))
        if host is None or ":" in host or (port == "") != (":" not in text):
            raise ValueError(f"{text!r} is not HOST, *.HOST or one of them with :PORT")
        return cls(host, below, _port(port) if port else None)

    def covers(self, host: str, port: int) -> bool:
        named = host.endswith(f".{self.host}") if self.below else host == self.host
        return named and (port in WEB_PORTS if self.port is None else port == self.port)


@dataclass(frozen=True)
class Policy:
    """What one sandbox may reach.

    Args:
        name: AllowList or Open.
        rules: of an AllowList.
        trusted: where the operator of the machine leads a host and port, whatever address that is; a policy must
            allow them all the same.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    trusted: Mapping[Place, Place] = field(default_factory=dict[Place, Place])

    @classmethod
    def of(cls, name: str, allow: Iterable[str] = (), trusted: Iterable[str] = ()) -> "Policy":
        """From words: entries of an allow list, and `HOST:PORT=ADDRESS:PORT` for what is trusted.

        Raises:
            ValueError: a word is wrong, or the policy lets nothing out and needs no proxy.
        """
        if name not in (ALLOW_LIST, OPEN):
            raise ValueError(f"{name!r} is not a policy that lets anything out")
        rules = tuple(Rule.parse(word) for word in allow)
        return cls(name, rules, dict(_trusted(word) for word in trusted))

    def allows(self, host: str, port: int) -> Rule | None:
        """The rule that lets a connection to this host (as `canonical` writes it) and port out; None: none does."""
        if self.name == OPEN:
            web = port in WEB_PORTS or (host, port) in self.trusted
            return Rule(host, port=port) if web else None
        return next((rule for rule in self.rules if rule.covers(host, port)), None)


def _port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 5 else 0
    if not 0 < number < 65536:
        raise ValueError(f"{text!r} is not a port")
    return number


def place(text: str) -> Place:
    """`HOST:PORT`, an IPv6 address in brackets.

    Raises:
        ValueError: it is not.
    """
    name, separator, port = text.rpartition(":")
    bracketed = name.startswith("[") and name.endswith("]")
    host = canonical(name[1:-1] if bracketed else name)
    if not separator or host is None or bracketed != (":" in host):
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, _port(port)


def _trusted(word: str) -> tuple[Place, Place]:
    asked, separator, led = word.partition("=")
    if not separator:
        raise ValueError(f"{word!r} is not HOST:PORT=ADDRESS:PORT")
    address, port = place(led)
    ipaddress.ip_address(address)  # a name would be resolved, and not judged
    return place(asked), (address, port)
