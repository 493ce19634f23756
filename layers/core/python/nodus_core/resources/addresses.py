"""Addresses that users name, of model providers, code hosts and archives: public HTTPS only, in every spelling (FLD-13,
NOD-116)."""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

_LOCAL_SUFFIXES = (".localhost", ".local", ".internal", ".intranet", ".lan", ".home.arpa", ".onion")
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9_-]{1,63}\.)+[a-z0-9-]{1,63}")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
"""What is global unicast in IPv6; site-local addresses, for one, lie outside and count as global for Python."""
_RESERVED = (ipaddress.ip_network("3fff::/20"), ipaddress.ip_network("192.88.99.0/24"))
"""Documentation, and relays of 6to4, which not every Python knows."""
LONGEST_ADDRESS = 2048

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def why_not_public(url: str, *, query: bool = False) -> str | None:
    """What is wrong with a base URL, in words that repeat none of it; None when it may be used. `query`: it may have one.

    Looks at the text only: what a name resolves to is checked again when a call is sent.
    """
    if len(url) > LONGEST_ADDRESS or any(
        char <= " " or char == "\\" or not char.isprintable() for char in url
    ):
        return f"must be one https address of at most {LONGEST_ADDRESS} characters, without spaces or control characters"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "must be an https address such as https://example.com/path"
    if parts.scheme.lower() != "https" or not host:
        return "must be an https address such as https://example.com/path"
    if "@" in parts.netloc:
        return "must not hold a user name or password"
    if "#" in url or ("?" in url and not query):
        return "must not hold a fragment" if query else "must not hold a query or a fragment"
    if port == 0:
        return "must name a port from 1 to 65535, or none"
    if "[" in parts.netloc and (":" not in host or "%" in host):
        return "must hold nothing but an IPv6 address in brackets"
    return _why_not_public_host(host)


def _why_not_public_host(host: str) -> str | None:
    name = host.rstrip(".").lower()
    address = _literal(name)
    if address is not None:
        if not is_public(address):
            return "must be a public address"
        # Other spellings are read here as C libraries do, and differently or not at all by HTTP clients.
        if address.version == 4 and str(address) != host:
            return "must write its IPv4 address as four plain numbers"
        return None
    if name.rpartition(".")[2].isdecimal():
        return "must be a public host name: its last part is a number"
    if not name.isascii():
        return "must name its host in ASCII (xn--… for other letters)"
    if "." not in name or f".{name}".endswith(_LOCAL_SUFFIXES) or _NAME.fullmatch(name) is None:
        return "must be a public host name"
    # The name that is looked up must be the one that the provider's certificate is for.
    return "must name its host without a dot at its end" if host.endswith(".") else None


def _literal(name: str) -> Address | None:
    """The address that a host is written as, in whatever spelling C libraries read (`0x7f.1`, `2852039166`)."""
    if ":" in name:
        try:
            return ipaddress.IPv6Address(name.partition("%")[0])
        except ValueError:
            return ipaddress.IPv6Address("::")  # no address at all: unspecified, hence refused
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, UnicodeError):
        return None


def is_public(address: Address) -> bool:
    """Whether an address is a global unicast one, looking also into IPv6 forms that carry an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    if any(address in network for network in _RESERVED):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in _NAT64 or int(address) >> 32 == 0:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
