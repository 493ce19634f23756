"""Fetching one commit without its history: by git's smart HTTP from a host, or from a bare repository on this machine.

dulwich speaks the protocol; what goes over the network goes through our client, to judged addresses only.
Imports dulwich and httpx2: import this module only when a source is about to be copied.
"""

import base64
import io
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import httpx2
from dulwich.client import AbstractHttpGitClient, GitClient, LocalGitClient
from dulwich.errors import HangupException
from dulwich.object_store import ObjectStoreGraphWalker

from nodus_core.conversations.sources import MOST_PACKED, SourceRefused, SourceUnavailable
from nodus_core.kernel.errors import NodusError
from nodus_core.providers.git_refs import prefixes, wanted
from nodus_core.providers.http import AnswerTooLarge
from nodus_core.providers.posting import NeverSendable
from nodus_core.providers.source_hosts import judge

MOST_WORDS = 300
"""Characters of a host's own words that are told."""

log = logging.getLogger(__name__)


def fetch(client: GitClient, path: str, ref: str | None, repo: str, into: BinaryIO) -> bytes:
    """Writes the objects of one commit as a pack; returns the name of the object that was asked for.

    Raises `SourceRefused`, `SourceUnavailable`, and whatever dulwich makes of an answer that is none.
    """
    found: list[bytes] = []

    def determine(refs: dict[bytes, bytes], depth: int | None = None) -> list[bytes]:
        found.append(wanted(refs, ref, repo))
        return found

    def keep(data: bytes) -> int:
        if into.tell() + len(data) > MOST_PACKED:
            raise SourceRefused(f"{repo} has more than {MOST_PACKED} packed bytes at one commit")
        return into.write(data)

    nothing = ObjectStoreGraphWalker([], lambda _: [])
    with _told(repo):
        told: Any = client.fetch_pack(path, determine, nothing, keep, depth=1, ref_prefix=prefixes(ref))  # pyright: ignore[reportArgumentType]
    into.flush()
    if told.object_format not in (None, "sha1"):
        raise SourceRefused(f"{repo} names its objects by {told.object_format}; only SHA-1 is read")
    return found[0]


@contextmanager
def _told(repo: str) -> Iterator[None]:
    """Says what dulwich raises over an answer, in our words: nothing that a host sends is believed to be well formed."""
    try:
        yield
    except NodusError:
        raise
    except HangupException:
        raise SourceUnavailable(f"the answer of the host of {repo} broke off") from None
    except KeyError:
        raise SourceRefused(f"{repo} has no such commit") from None
    except Exception as error:
        log.info("%s was not fetched", repo, exc_info=True)
        raise SourceRefused(
            f"{repo} was not fetched: {str(error)[:MOST_WORDS] or type(error).__name__}"
        ) from None


class LocalClient(LocalGitClient):
    """A bare repository below the folder that the operator has allowed."""

    def __init__(self, folder: Path, repo: str) -> None:
        super().__init__(thin_packs=False)
        self.path = (folder / f"{repo}.git").resolve()
        if not self.path.is_relative_to(folder.resolve()) or not self.path.is_dir():
            raise SourceRefused(
                f"there is no bare repository {repo}.git in the folder that the operator has allowed"
            )


class SmartHttpClient(AbstractHttpGitClient):
    """A repository at an https address. Its credential goes to that address and nowhere else."""

    def __init__(self, url: str, repo: str, login: tuple[str, str] | None, client: httpx2.Client) -> None:
        super().__init__(url, thin_packs=False)
        self._client = client
        self._below = url.rstrip("/") + "/"
        self._repo = repo
        self._login = login

    def _http_request(
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,
    ) -> tuple[Any, Callable[[int], bytes]]:
        if not url.startswith(self._below):
            raise SourceRefused(f"the host of {self._repo} wants files to be read from another address")
        sent = dict(headers or {})
        if self._login is not None:
            pair = base64.b64encode(":".join(self._login).encode()).decode()
            sent["Authorization"] = f"Basic {pair}"
        request = self._client.build_request(
            "GET" if data is None else "POST", url, headers=sent, content=data
        )
        try:
            answer = self._client.send(request, stream=True)
        except NeverSendable as error:
            raise SourceRefused(f"{self._repo} cannot be read: {error}") from None
        except httpx2.HTTPError as error:
            raise SourceUnavailable(f"the host of {self._repo} does not answer: {error}") from None
        try:
            judge(answer, self._repo)
        except BaseException:
            answer.close()
            raise
        kind = answer.headers.get("content-type", "")
        told = SimpleNamespace(content_type=kind, redirect_location=None, close=answer.close)
        if not kind.startswith("application/x-git-"):
            answer.close()
            raise SourceRefused(
                f"the host of {self._repo} does not speak git's smart protocol at this address"
            )
        return told, io.BufferedReader(_Body(answer.iter_raw(), self._repo), 1 << 16).read


class _Body(io.RawIOBase):
    """The bytes of an answer as a file."""

    def __init__(self, parts: Iterator[bytes], repo: str) -> None:
        self._parts = parts
        self._repo = repo
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            while not self._rest:
                self._rest = next(self._parts)
        except StopIteration:
            return 0
        except AnswerTooLarge:
            raise SourceRefused(
                f"{self._repo} has more than {MOST_PACKED} packed bytes at one commit"
            ) from None
        except httpx2.HTTPError as error:
            raise SourceUnavailable(f"the answer of the host of {self._repo} broke off: {error}") from None
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
