"""A git host on loopback that speaks TLS under a public name: the system's git answers below it."""

import subprocess
from pathlib import Path

from tls_providers import Request, Told

HOST = "git.example.com"


class GitHost:
    """What is told to requests for the repositories of a folder. `login`: the header that it asks for."""

    def __init__(self, folder: Path, login: str | None = None) -> None:
        self.folder = folder
        self.login = login
        self.oldest = False
        """Whether it speaks the oldest version of the protocol only."""

    def __call__(self, request: Request) -> Told | None:
        path, _, query = request.path.partition("?")
        if self.login is not None and request.headers.get("authorization") != self.login:
            return Told(401)
        for service in ("/info/refs", "/git-upload-pack"):
            repository = self.folder / path.removesuffix(service).lstrip("/")
            if path.endswith(service) and repository.is_dir():
                return self._answer(repository, service, query, request)
        return Told(404)

    def _answer(self, repository: Path, service: str, query: str, request: Request) -> Told:
        version = "" if self.oldest else request.headers.get("git-protocol", "")
        asks = service == "/info/refs"
        options = ["--stateless-rpc", "--http-backend-info-refs"] if asks else ["--stateless-rpc"]
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "upload-pack", *options, str(repository)],
            input=request.body,
            capture_output=True,
            env={"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_PROTOCOL": version, "HOME": "/nonexistent"},
            check=True,
        )
        head = b"001e# service=git-upload-pack\n0000" if asks and not version else b""
        kind = "application/x-git-upload-pack-" + ("advertisement" if asks else "result")
        return Told(200, head + done.stdout, {"Content-Type": kind})
