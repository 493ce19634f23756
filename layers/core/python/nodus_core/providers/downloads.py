"""The port to archives at addresses: fetched from hosts that the operator has allowed, into a bounded file, by hash."""

# ruff: noqa: PLC0415 - the HTTP stack is imported when the first archive is fetched

import hashlib
import io
import tempfile
import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urldefrag, urljoin

from nodus_core.conversations.sources import (
    FETCH_TIME_S,
    MOST_PACKED,
    Allowed,
    Snapshot,
    SourceRefused,
    SourceUnavailable,
)
from nodus_core.kernel.text import cut
from nodus_core.providers.credentials import Credentials
from nodus_core.providers.posting import NeverSendable
from nodus_core.resources.addresses import why_not_public

if TYPE_CHECKING:
    import httpx2

MOST_REDIRECTS = 5

_MOST_SHOWN = 200
"""Bytes of an address that a message tells."""

_UNREADABLE = "there is nothing at this address, or not everybody may read it"


class AllowedDownloads:
    """`Downloads` over https. `read_secret` gives the providers' secret."""

    def __init__(self, allowed: Allowed, read_secret: Callable[[], str]) -> None:
        self._allowed = allowed
        self._read_secret = read_secret

    @contextmanager
    def snapshot(self, url: str, sha256: str | None) -> Iterator[Snapshot]:
        """See the port. Holds the archive as a file without a name, which ends with the process at the latest."""
        from nodus_core.providers.source_hosts import source_client

        credentials = Credentials.from_json(self._read_secret())
        with (
            tempfile.TemporaryFile() as archive,
            source_client(credentials, "its address", MOST_PACKED) as client,
        ):
            self._fetch(client, url, archive, credentials.own_keys.private_hosts)
            size = archive.tell()
            if sha256 is not None:
                _compare(archive, sha256, url)
            archive.seek(0)
            yield Snapshot(archive, size)

    def _fetch(self, client: "httpx2.Client", url: str, into: BinaryIO, placed: Container[str]) -> None:
        """Writes what is at an address, or where its host sends on to."""
        at, ends = url, time.monotonic() + FETCH_TIME_S
        for _ in range(MOST_REDIRECTS + 1):
            self._judge(at, url, placed)
            if time.monotonic() > ends:
                raise SourceUnavailable(f"{_shown(url)} was not read within {FETCH_TIME_S} s")
            answer = _asked(client, at, url)
            try:
                if not answer.has_redirect_location:
                    return _keep(answer, url, into)
                at = _led_to(at, answer.headers["location"], url)
            finally:
                answer.close()
        raise SourceRefused(f"the host of {_shown(url)} sends on more than {MOST_REDIRECTS} times")

    def _judge(self, at: str, url: str, placed: Container[str]) -> None:
        """What a host sends on to is judged as what a person has written."""
        address = _shown(at) if at == url else f"{_shown(at)} (which {_shown(url)} leads to)"
        why = why_not_public(at, query=True)
        if why is not None:
            raise SourceRefused(f"the address {address} {why}")
        if not self._allowed.allows_archive(at, placed):
            raise SourceRefused(
                f"the operator has not allowed archives of the host of {address}: ask for it "
                "(archiveHosts), or name an address at a host that is allowed"
            )


def _led_to(at: str, location: str, url: str) -> str:
    try:
        return urldefrag(urljoin(at, location)).url
    except ValueError:
        raise SourceRefused(f"the host of {_shown(url)} sends on to what is no address") from None


def _asked(client: "httpx2.Client", at: str, url: str) -> "httpx2.Response":
    import httpx2

    try:
        return client.send(client.build_request("GET", at), stream=True)
    except NeverSendable as error:
        raise SourceRefused(f"{_shown(url)} cannot be read: {error}") from None
    except httpx2.HTTPError as error:
        raise SourceUnavailable(
            f"the host of {_shown(url)} gives no answer that can be read: {error}"
        ) from None


def _keep(answer: "httpx2.Response", url: str, into: BinaryIO) -> None:
    import httpx2

    from nodus_core.providers.http import AnswerTooLarge
    from nodus_core.providers.source_hosts import judge

    judge(answer, _shown(url), _UNREADABLE)
    if answer.headers.get("content-type", "").lower().startswith("text/html"):
        raise SourceRefused(
            f"the host of {_shown(url)} answers with a web page, not with an archive: name the address of the file itself"
        )
    try:
        for part in answer.iter_raw():
            into.write(part)
    except AnswerTooLarge:
        raise SourceRefused(f"the archive at {_shown(url)} has more than {MOST_PACKED} bytes") from None
    except httpx2.HTTPError as error:
        raise SourceUnavailable(f"the answer of the host of {_shown(url)} broke off: {error}") from None
    if not into.tell():
        raise SourceRefused(f"there is nothing at {_shown(url)}: the answer is empty")


def _compare(archive: io.BufferedRandom, sha256: str, url: str) -> None:
    archive.seek(0)
    found = hashlib.file_digest(archive, "sha256").hexdigest()
    if found != sha256:
        raise SourceRefused(
            f"the archive at {_shown(url)} has the SHA-256 {found}, not {sha256} as spec.source.archive.sha256 says"
        )


def _shown(url: str) -> str:
    """An address in a message, without what may be a secret; hosts choose what they send on to."""
    head, at, host = url.partition("?")[0].partition("#")[0].rpartition("@")
    plain = f"https://{host}" if at else head + at + host
    return cut("".join(char if " " < char < "\x7f" else "?" for char in plain), _MOST_SHOWN)
