"""`nodus config`, `nodus logout`: contexts, and a configuration for kubectl."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
import yaml
from nodus_core.access.door import Door
from nodus_core.access.limits import Limits
from nodus_core.conversations.directory import Directory
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.access import Access
from nodus_core.journal.journal import Journal
from nodus_core.journal.rates import Rates
from nodus_core.kernel.errors import Refusal
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import TOKEN, FakeServer, Fault, status_of

WORK = {"server": "https://nodus.example.com", "org": "acme", "project": "web", "token": "key-of-work"}
LOCAL = {
    "server": "http://127.0.0.1:4510",
    "org": "default",
    "project": "default",
    "token": "key-of-local",
    "state": "/srv/state",
}


@pytest.fixture
def contexts(config_file: Path) -> Path:
    config_file.parent.mkdir(parents=True, exist_ok=True)
    config_file.write_text(
        json.dumps({"current-context": "work", "contexts": {"work": WORK, "local": LOCAL}})
    )
    return config_file


def stored(path: Path) -> dict[str, dict[str, str]]:
    return json.loads(path.read_text())["contexts"]


def test_the_contexts_and_the_current_one(cli: Cli, contexts: Path) -> None:
    rows = [line.split() for line in cli("config", "get-contexts").out.splitlines()]
    assert rows[0] == ["CURRENT", "NAME", "SERVER", "ORG", "PROJECT"]
    assert rows[1:] == [
        ["*", "work", "https://nodus.example.com", "acme", "web"],
        ["local", "http://127.0.0.1:4510", "default", "default"],
    ]
    assert cli("config", "get-contexts", "-o", "name").out == "work\nlocal\n"
    assert cli("config", "current-context").out == "work\n"
    assert cli("config", "use-context", "local").code == 0
    assert cli("config", "current-context").out == "local\n"


def test_a_context_is_changed_and_keeps_its_key_and_what_others_wrote(cli: Cli, contexts: Path) -> None:
    assert cli("config", "set-context", "local", "-p", "staging", "--org", "acme").code == 0
    assert stored(contexts)["local"] == LOCAL | {"project": "staging", "org": "acme"}
    assert cli("config", "set-context", "--current", "-p", "shop").code == 0
    assert stored(contexts)["work"] == WORK | {"project": "shop"}
    assert contexts.stat().st_mode & 0o777 == 0o600


def test_a_new_context_is_without_a_key(cli: Cli, contexts: Path) -> None:
    output = cli("config", "set-context", "new", "--server", "https://other.example.com/")
    assert (output.code, output.out) == (0, "Context new made.\n")
    assert output.err == "It has no key yet: nodus login --context new\n"
    assert cli("config", "current-context").out == "work\n", "making one does not choose it"
    refused = cli("--context", "new", "get", "ar")
    assert (refused.code, "Error (NotSignedIn)" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("set-context",), "give the NAME of a context, or --current"),
        (("set-context", "x", "--current"), "give the NAME of a context, or --current"),
        (("set-context", "x"), "context 'x' is new: give its --server URL"),
        (("set-context", "x", "--server", "nodus.example.com"), "must begin with https://"),
        (("use-context", "x"), "Error (ContextNotFound): no context 'x'"),
        (("delete-context", "x"), "Error (ContextNotFound): no context 'x'"),
    ],
)
def test_what_cannot_be_done_teaches(cli: Cli, contexts: Path, words: tuple[str, ...], says: str) -> None:
    before = contexts.read_text()
    output = cli("config", *words)
    assert (output.code, says in output.err) == (1, True)
    assert contexts.read_text() == before


def test_a_deleted_context_is_gone(cli: Cli, contexts: Path) -> None:
    output = cli("config", "delete-context", "work")
    assert (output.out, "No context is current now" in output.err) == ("Context work deleted.\n", True)
    assert [*stored(contexts)] == ["local"]
    assert "ContextNotFound" in cli("config", "current-context").err


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_view_hides_every_key(cli: Cli, contexts: Path, form: str) -> None:
    output = cli("config", "view", "-o", form)
    shown = yaml.safe_load(output.out)
    assert shown["current-context"] == "work"
    assert shown["contexts"]["work"] == WORK | {"token": "(hidden)"}
    assert shown["contexts"]["local"]["state"] == "/srv/state"
    assert "key-of" not in output.out


def test_kubectl_gets_the_address_under_tls_its_authority_the_key_and_the_project(
    cli: Cli, contexts: Path, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    entries = {
        "local": LOCAL | {"tlsServer": "https://127.0.0.1:4511", "caFile": str(authority)},
        "work": WORK,
    }
    contexts.write_text(json.dumps({"current-context": "local", "contexts": entries}))
    made = yaml.safe_load(cli("config", "kubeconfig", "-p", "staging").out)
    assert made["clusters"] == [
        {
            "name": "local",
            "cluster": {
                "server": "https://127.0.0.1:4511",
                "certificate-authority-data": base64.b64encode(authority.read_bytes()).decode(),
            },
        }
    ]
    assert made["users"] == [{"name": "local", "user": {"token": "key-of-local"}}]
    assert made["contexts"] == [
        {"name": "local", "context": {"cluster": "local", "user": "local", "namespace": "staging"}}
    ]
    assert (made["apiVersion"], made["kind"], made["current-context"]) == ("v1", "Config", "local")
    other = yaml.safe_load(cli("config", "kubeconfig", "--context", "work").out)
    assert other["clusters"] == [{"name": "work", "cluster": {"server": "https://nodus.example.com"}}]


def test_kubectl_is_not_given_an_address_without_tls(cli: Cli, contexts: Path) -> None:
    output = cli("config", "kubeconfig", "--context", "local")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (NoTLS): http://127.0.0.1:4510 is not known under TLS")


def test_what_a_context_says_of_its_server_is_not_said_of_another(
    cli: Cli, contexts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODUS_SERVER", "https://elsewhere.example.com")
    made = yaml.safe_load(cli("config", "kubeconfig").out)
    assert made["clusters"] == [{"name": "nodus", "cluster": {"server": "https://elsewhere.example.com"}}]


def test_logout_forgets_the_key_and_nothing_else(cli: Cli, contexts: Path) -> None:
    assert cli("logout").out == "Signed out of https://nodus.example.com (context work).\n"
    assert stored(contexts) == {"work": WORK | {"token": ""}, "local": LOCAL}
    assert cli("logout").err == "Not signed in.\n"
    assert cli("logout", "--context", "local").code == 0
    assert stored(contexts)["local"]["token"] == ""


def test_a_login_elsewhere_takes_nothing_of_the_old_server_along(
    cli: Cli, contexts: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODUS_TOKEN")
    entries = {"local": LOCAL | {"tlsServer": "https://127.0.0.1:4511"}}
    contexts.write_text(json.dumps({"current-context": "local", "contexts": entries}))
    assert cli("login", "--server", server.address, "--key", TOKEN).code == 0
    assert stored(contexts)["local"] == {
        "server": server.address,
        "org": "default",
        "project": "default",
        "token": TOKEN,
    }


# --- who calls ---


def test_whoami_names_the_key_and_what_it_may(
    cli: Cli, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("create", "apikey", "ci", "--role", "editor", "--for-project", "web")
    server.object("apikeys", "ci", "")["status"] = {"prefix": TOKEN[:12]}
    assert cli("whoami", "-p", "web").out == (
        f"Server:       {server.address}\n"
        "Organization: (that of the key)\n"
        "Project:      web\n"
        "Key:          ci\n"
        "May:          editor\n"
        "In projects:  web\n"
    )


def refused(projects: list[str], org: str | None) -> bytes:
    """What the server says to one who asks for keys with a key that may read agents only."""
    journal = Journal(MemoryStore(), ids := CountingIds())
    directory = Directory.over(Shelf(journal, MemoryPayloads(), FakeClock()), ids)
    directory.create_organization("acme")
    directory.create_project("acme", "web")
    permissions = ["agents:read"] if projects == ["*"] else ["*"]
    token = directory.create_key("acme", "k", projects, permissions)
    limits = Limits(Rates(journal.writer), FakeClock())
    door = Door(Access(journal.writer), FakeClock(), limits)
    with pytest.raises(Refusal) as caught:
        door.enter_organization(door.caller(f"Bearer {token}", org), "apikeys:read")
    return json.dumps(status_of(403, "Forbidden", str(caught.value))).encode()


@pytest.mark.parametrize("projects", [["*"], ["web"]])
def test_whoami_of_a_key_that_may_not_read_keys(cli: Cli, server: FakeServer, projects: list[str]) -> None:
    server.faults.append(Fault("GET .*/apikeys", status=403, body=refused(projects, "acme")))
    lines = cli("whoami", "--org", "default").out.splitlines()
    assert lines[1:] == ["Organization: default", "Project:      default", f"Key:          {TOKEN[:12]}…"]


@pytest.mark.parametrize(
    "body", [refused(["*"], "rival"), refused(["web"], "rival"), b'{"message":"Forbidden"}']
)
def test_whoami_of_a_key_that_is_refused_says_so(cli: Cli, server: FakeServer, body: bytes) -> None:
    server.faults.append(Fault("GET .*/apikeys", status=403, body=body))
    output = cli("whoami", "--org", "rival")
    assert (output.code, output.out) == (1, "")
    assert output.err == f"Error (Forbidden): {json.loads(body)['message']}\n"


def test_whoami_of_a_key_that_is_not_known(
    cli: Cli, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODUS_TOKEN", "wrong")
    output = cli("whoami")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (Unauthorized)")
    assert "did you mean `nodus whoami`?" in cli("auth", "whoami").err
