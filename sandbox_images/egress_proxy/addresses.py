"""Which addresses are the public internet, and how a name becomes one that was judged."""

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence

from .refusals import Refused

RESOLVE_S = 10.0
CONNECT_S = 10.0
MOST_TRIED = 4
"""Addresses of one name that are tried one after the other."""

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to the texts of all addresses; OSError where there are none."""

_BLOCKED_4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux takes 0.0.0.0 for itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, seen by its virtual machines alone
        "169.254.0.0/16",  # link-local, with the metadata of clouds and of ECS
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Only global unicast is taken, so that mapped (::ffff:0:0/96), NAT64 (64:ff9b::/96, 64:ff9b:1::/48), unique local,
# link-local, site-local and multicast addresses need no line of their own. Of it, what carries another address:
_UNICAST_6 = ipaddress.IPv6Network("2000::/3")
_BLOCKED_6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo and ORCHID among them
        "2002::/16",  # 6to4
    )
)


def why_blocked(text: str) -> str | None:
    """Why an address may not be connected to; None when it is on the public internet and not this machine's own.

    Ranges for documentation are not blocked: they lead nowhere, and test networks use them.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "is no plain address"
    if isinstance(address, ipaddress.IPv4Address):
        blocked = any(address in network for network in _BLOCKED_4)
    else:
        blocked = address not in _UNICAST_6 or any(address in network for network in _BLOCKED_6)
    if blocked:
        return "is a private, local, metadata or reserved address"
    return "is an address of the sandbox's own machine" if _is_own(text, address.version) else None


def _is_own(text: str, version: int) -> bool:
    """Whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((text, 0))
    except OSError as error:
        # A machine without IPv6 has no address of it.
        return error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
    return True


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """All addresses that the system knows of a name."""
    # Bytes, as Python would encode a text by a codec that it loads when it is too late to read files.
    found = await asyncio.get_running_loop().getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def judged(host: str, port: int, resolver: Resolver) -> Sequence[str]:
    """The addresses of a name or a literal, asked for once and all of them judged.

    Raises:
        Refused: there are none, or one of them may not be connected to, which spoils the others: a name that mixes
            them is one that somebody plays with.
    """
    try:
        async with asyncio.timeout(RESOLVE_S):
            found = await resolver(host, port)
    except TimeoutError:
        raise Refused(504, "resolve", f"{host} could not be resolved in {RESOLVE_S:.0f} s") from None
    except (OSError, UnicodeError):
        raise Refused(502, "resolve", f"{host} cannot be resolved") from None
    if not found:
        raise Refused(502, "resolve", f"{host} has no address")
    for address in found:
        why = why_blocked(address)
        if why is not None:
            raise Refused(403, "address", f"an address of {host} {why}")
    return found


async def connect(host: str, port: int, addresses: Sequence[str]) -> tuple[socket.socket, str]:
    """A socket that is connected to one of exactly these addresses, and which: nothing is resolved any more.

    Raises:
        Refused: none of them answers.
    """
    loop, problem = asyncio.get_running_loop(), "no address was tried"
    for address in addresses[:MOST_TRIED]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = None
        try:
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.setblocking(False)
            async with asyncio.timeout(CONNECT_S):
                await loop.sock_connect(connection, (address, port))
        except (TimeoutError, OSError) as error:
            problem = error.strerror if isinstance(error, OSError) and error.strerror else "no answer in time"
            if connection is not None:
                connection.close()
        except asyncio.CancelledError:
            if connection is not None:
                connection.close()
            raise
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection, address
    raise Refused(502, "connect", f"{host}:{port} cannot be reached: {problem}")
