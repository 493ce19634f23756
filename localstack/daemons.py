"""The processes of a local cloud: which there are, how each is started, when each is ready."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import urllib.error
import urllib.request
from pathlib import Path

from localstack.endpoints import REGION, Cloud, NoCloudError
from localstack.paths import APP_BIN, CLOUD_PYTHON, ROOT, State
from localstack.processes import MARK, Daemon

CLOUD = "cloud"
AGENT = "ecs-agent"
SCRIPTED = "scripted"

# Below the range from which the system takes ports for outgoing connections, so that it stays ours.
PORTS = range(24000, 30000)

# Services that the deployed app or the CDK command line use; MiniStack leaves the others out.
SERVICES = (
    "apigateway",
    "autoscaling",
    "cloudformation",
    "dynamodb",
    "dynamodbstreams",
    "ec2",
    "ecr",
    "ecs",
    "events",
    "iam",
    "kms",
    "lambda",
    "logs",
    "monitoring",
    "pipes",
    "resource-groups",
    "s3",
    "scheduler",
    "secretsmanager",
    "sns",
    "sqs",
    "ssm",
    "states",
    "sts",
    "tagging",
)


def new_cloud(state: State) -> Cloud:
    """The cloud of `state` as it was, or one with fresh credentials, on a port that is free now."""
    try:
        known = Cloud.load(state)
    except NoCloudError:
        key = f"AKIA{secrets.token_hex(8).upper()}"
        known = Cloud(endpoint="", access_key_id=key, secret_access_key=secrets.token_urlsafe(30))
    plain = _port(known.endpoint)
    return Cloud(
        endpoint=f"http://127.0.0.1:{plain}",
        tls_endpoint=f"https://127.0.0.1:{_port(known.tls_endpoint, but=plain)}",
        access_key_id=known.access_key_id,
        secret_access_key=known.secret_access_key,
        outputs=known.outputs,
    )


def _port(known: str, *, but: int | None = None) -> int:
    """The port of a known address while it is free, else another one."""
    port = known.rpartition(":")[2]
    return int(port) if port and int(port) != but and is_free(int(port)) else free_port(but=but)


def free_port(*, but: int | None = None) -> int:
    """A port of ours that nobody listens on, other than `but`."""
    start = secrets.randbelow(len(PORTS))
    for offset in range(len(PORTS)):
        port = PORTS[(start + offset) % len(PORTS)]
        if port != but and is_free(port):
            return port
    raise NoCloudError(f"no free port from {PORTS.start} to {PORTS.stop - 1} on 127.0.0.1")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# What a person tells the sandboxes' agent.
AGENT_WORDS = (
    "NODUS_SANDBOX_UNISOLATED",
    "NODUS_SANDBOX_GUARD",
    "NODUS_EGRESS_TRUSTED",
    "NODUS_BWRAP",
    "NODUS_MAX_SANDBOXES",
)
# Of the caller's environment: where home and certificates are, and these words.
KEPT = ("HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", *AGENT_WORDS)


def base_environment(state: State) -> dict[str, str]:
    """What every process of the cloud gets; the rest of the caller's environment, keys of providers included,
    stays out."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    system = os.environ.get("PATH", "/usr/bin:/bin")
    return {
        **kept,
        MARK: str(state.folder),
        "NODUS_STATE": str(state.folder),
        "PATH": os.pathsep.join([str(APP_BIN), str(CLOUD_PYTHON.parent), system]),
        "PYTHONUNBUFFERED": "1",
    }


def cloud_daemon(state: State, cloud: Cloud) -> Daemon:
    """The emulated AWS."""
    port = cloud.endpoint.rpartition(":")[2]
    options = {
        name: os.environ[name]
        for name in ("LAMBDA_ACCOUNT_CONCURRENCY", "LOG_LEVEL", "NODUS_FAULTS")
        if name in os.environ
    }
    environment = {
        **base_environment(state),
        **cloud.environment(),
        "AUTH": "true",
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": port,
        "TLS_PORT": cloud.tls_endpoint.rpartition(":")[2],
        "MINISTACK_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "MINISTACK_WORKER_THREADS": "256",
        "SERVICES": ",".join(SERVICES),
        "PERSIST_STATE": "1",
        "STATE_DIR": str(state.emulator / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(state.emulator / "s3"),
        "TMPDIR": str(state.emulator / "tmp"),
        "DOCKER_HOST": "unix:///nonexistent",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "INFO",
        **options,
    }
    command = [str(CLOUD_PYTHON), "-m", "localstack.cloud"]
    return Daemon(CLOUD, command, environment, state.run, state.logs / "cloud.log", ROOT)


def agent_daemon(state: State, cloud: Cloud) -> Daemon:
    """The agent that runs the emulator's ECS tasks as sandboxes."""
    environment = {**base_environment(state), **cloud.environment(), "TMPDIR": str(state.emulator / "tmp")}
    command = [str(CLOUD_PYTHON), "-m", "localstack.ecs_agent"]
    # Sandboxes inherit the mask, and commands expect the usual one; the agent's folder is closed as a whole.
    log = state.logs / "ecs-agent.log"
    return Daemon(AGENT, command, environment, state.run, log, ROOT, umask=0o022)


def scripted_daemon(state: State) -> Daemon:
    """The model server that plays scripts: the examples', and those in the folders that NODUS_SCRIPTS lists."""
    own = os.environ.get("NODUS_SCRIPTS", "").split(os.pathsep)
    folders = [str(ROOT / "examples" / "scripts"), *filter(None, own)]
    command = [
        *(str(CLOUD_PYTHON), "-m", "localstack.scripted"),
        *("--port-file", str(scripted_port_file(state)), "--last-port-file", str(last_port_file(state))),
        *("--key-file", str(scripted_key_file(state))),
        *("--state", str(state.scripted)),
        *(word for folder in folders for word in ("--scripts", folder)),
    ]
    return Daemon(SCRIPTED, command, base_environment(state), state.run, state.logs / "scripted.log", ROOT)


def scripted_port_file(state: State) -> Path:
    return state.run / "scripted.port"


def scripted_key_file(state: State) -> Path:
    return state.folder / "scripted.key"


def scripted_port(state: State) -> int | None:
    """The port of the scripted model server, None while it is not ready."""
    return read_port(scripted_port_file(state))


def last_port_file(state: State) -> Path:
    """Where the scripted model server listened last: runs that go on after a restart still have that address."""
    return state.run / "scripted.last-port"


def read_port(path: Path) -> int | None:
    try:
        return int(path.read_text().strip())
    except (FileNotFoundError, ValueError):
        return None


def answers(cloud: Cloud) -> bool:
    """Whether the emulator answers on its port."""
    try:
        with urllib.request.urlopen(f"{cloud.endpoint}/_ministack/health", timeout=2) as response:  # noqa: S310
            return "services" in json.load(response)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def forget(state: State) -> None:
    """Remove what a stopped cloud holds in memory only."""
    shutil.rmtree(state.emulator / "tmp", ignore_errors=True)
    forget_scripted(state)


def forget_scripted(state: State) -> None:
    """The scripted model server does not run, and shall listen where it did."""
    if scripted_port_file(state).exists():
        scripted_port_file(state).replace(last_port_file(state))
