"""A bare MiniStack of the tests' own, from the local cloud's environment."""

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REGION = "us-east-1"
START_S = 30.0
STOP_S = 10.0


def cloud_python() -> Path | None:
    """The interpreter of the local cloud's environment, if `make up` or `make setup` has made one."""
    state = Path(os.environ.get("NODUS_STATE", ROOT / ".state"))
    python = state / "venv" / "bin" / "python"
    return python if python.exists() else None


@dataclass(frozen=True)
class Emulator:
    """A running MiniStack that checks signatures, and the one key that it takes."""

    port: int
    access_key: str
    secret_key: str
    process: subprocess.Popen[bytes]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(python: Path, folder: Path) -> Emulator:
    """Starts one in `folder` and waits until it answers."""
    port, access, secret = _free_port(), f"AKIA{secrets.token_hex(8).upper()}", secrets.token_hex(20)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "127.0.0.1",
        "AUTH": "true",
        "AWS_ACCESS_KEY_ID": access,
        "AWS_SECRET_ACCESS_KEY": secret,
        "S3_DATA_DIR": str(folder / "s3"),
        "DOCKER_HOST": "unix:///nonexistent",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
    }
    with (folder / "ministack.log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-m", "ministack"],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    emulator = Emulator(port, access, secret, process)
    _wait_until_it_answers(emulator, folder / "ministack.log")
    return emulator


def _wait_until_it_answers(emulator: Emulator, log: Path) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            with urllib.request.urlopen(f"{emulator.endpoint}/_ministack/health", timeout=1):
                return
        except (urllib.error.URLError, OSError) as error:
            if emulator.process.poll() is not None or time.monotonic() > end:
                emulator.stop()
                raise RuntimeError(
                    f"MiniStack does not answer ({error}): {log.read_text()[-2000:]}"
                ) from error
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
