"""The port to repositories: one commit fetched by git's protocol, checked, and made an archive, all in bounded files."""

# ruff: noqa: PLC0415 - git and the HTTP stack are imported when the first source is copied

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from nodus_core.conversations.sources import MOST_PACKED, Allowed, Remote, Snapshot, SourceRefused
from nodus_core.providers.credentials import Credentials

if TYPE_CHECKING:
    import httpx2

GITHUB_API = "https://api.github.com"
TOKEN_USER = "x-access-token"  # noqa: S105 - the name that goes with a token of GitHub, and that others ignore


class GitRepositories:
    """`Repositories` over git's smart HTTP, and over the operator's folder. `read_secret` gives the providers' secret."""

    def __init__(
        self, allowed: Allowed, read_secret: Callable[[], str], github_api: str = GITHUB_API
    ) -> None:
        self._allowed = allowed
        self._read_secret = read_secret
        self._github_api = github_api

    @contextmanager
    def snapshot(self, remote: Remote, ref: str | None) -> Iterator[Snapshot]:
        """See the port. Holds a pack and the archive as files without a name, which end with the process at the latest."""
        from nodus_core.providers.git_files import archived
        from nodus_core.providers.git_pack import opened

        with tempfile.TemporaryFile() as pack, tempfile.TemporaryFile() as archive:
            name = self._fetch(remote, ref, pack)
            with opened(pack, remote.repo) as objects:
                commit = objects.commit(name)
                entries, size = archived(objects, commit, remote.repo, archive)
            archive.seek(0)
            yield Snapshot(archive, size, commit.id.decode(), entries)

    def _fetch(self, remote: Remote, ref: str | None, into: BinaryIO) -> bytes:
        from nodus_core.providers.git_client import LocalClient, SmartHttpClient, fetch
        from nodus_core.providers.source_hosts import source_client

        if remote.type == "Local":
            local = LocalClient(Path(self._allowed.folder), remote.repo)
            return fetch(local, str(local.path), ref, remote.repo, into)
        credentials = Credentials.from_json(self._read_secret())
        # What frames the pack on the wire takes a thousandth of it.
        with source_client(
            credentials, "the connection's address", MOST_PACKED + MOST_PACKED // 64
        ) as client:
            login = self._login(remote, credentials, client)
            url = f"{remote.base}/{remote.repo}.git"
            return fetch(SmartHttpClient(url, remote.repo, login, client), "", ref, remote.repo, into)

    def _login(
        self, remote: Remote, credentials: Credentials, client: "httpx2.Client"
    ) -> tuple[str, str] | None:
        if remote.token is not None:
            return remote.user or TOKEN_USER, remote.token
        if remote.installation is None:
            return None
        from nodus_core.providers.github_app import App, installation_token

        if not self._allowed.app or credentials.github_app is None:
            raise SourceRefused("the operator of this installation has set up no GitHub App")
        app = App(self._allowed.app, credentials.github_app, self._github_api)
        token = installation_token(client, app, remote.installation, remote.repo)
        return TOKEN_USER, token
