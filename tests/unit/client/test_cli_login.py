"""`nodus login` and `nodus config`."""

from __future__ import annotations

from pathlib import Path

import pytest
from nodus import _config

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import TOKEN, FakeServer, Fault


@pytest.fixture
def signed_out(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.delenv("NODUS_SERVER")
    monkeypatch.delenv("NODUS_TOKEN")
    return server


@pytest.mark.req("NOD-481", "NODQ-98")
def test_before_login_commands_hint_and_after_it_they_work(
    cli: Cli, signed_out: FakeServer, config_file: Path
) -> None:
    before = cli("get", "ar")
    assert (before.code, before.out) == (1, "")
    assert before.err.startswith("Error (NotConfigured): no server is configured: sign in with `nodus login")
    words = (
        "login",
        "--key",
        TOKEN,
        "--server",
        signed_out.address + "/",
        "--org",
        "default",
        "--project",
        "web",
    )
    assert cli(*words).out == f"Signed in to {signed_out.address} (context default).\n"
    assert cli("get", "ar").err == "No agentruns in project web.\n"
    assert signed_out.seen[-1].headers["nodus-org"] == "default"


@pytest.mark.req("NOD-481")
@pytest.mark.parametrize("words", [(), ("--key",), ("--key", "-")])
def test_the_key_may_come_from_standard_input(
    cli: Cli, signed_out: FakeServer, words: tuple[str, ...]
) -> None:
    assert cli("login", "--server", signed_out.address, *words, stdin=f"{TOKEN}\n").code == 0
    assert _config.resolve().token == TOKEN


def test_a_wrong_key_is_not_stored(cli: Cli, signed_out: FakeServer, config_file: Path) -> None:
    output = cli("login", "--server", signed_out.address, "--key", "wrong")
    assert (output.code, config_file.exists()) == (1, False)
    assert output.err.startswith("Error (Unauthorized): ")


def test_a_key_that_may_not_list_agents_is_stored_with_a_warning(cli: Cli, signed_out: FakeServer) -> None:
    signed_out.faults.append(Fault("GET", status=403, reason="Forbidden"))
    output = cli("login", "--server", signed_out.address, "--key", TOKEN)
    assert (output.code, output.err) == (0, "Warning: injected\n")
    assert _config.resolve().token == TOKEN


def test_login_again_keeps_what_is_not_given(cli: Cli, signed_out: FakeServer) -> None:
    cli("login", "--server", signed_out.address, "--key", TOKEN, "--org", "default", "--project", "web")
    assert cli("login", "--key", TOKEN).code == 0
    found = _config.resolve()
    assert (found.server, found.org, found.project) == (signed_out.address, "default", "web")


def test_an_environment_that_goes_first_is_told(cli: Cli, server: FakeServer) -> None:
    assert "NODUS_TOKEN is set" in cli("login", "--server", server.address, "--key", TOKEN).err


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (("login", "--key", "x"), "", "which server? Give --server URL"),
        (("login", "--server", "nodus.example.com", "--key", "x"), "", "must begin with https://"),
        (("login", "--server", "http://127.0.0.1:1"), "", "no key: give --key KEY"),
        (("login", "--server", "http://127.0.0.1:1", "--key", "a b"), "", "copy it again"),
        (("config", "use-context", "gone"), "", "Error (ContextNotFound): no context 'gone'"),
        (("get", "ar", "--context", "gone"), "", "Error (ContextNotFound)"),
    ],
)
def test_what_is_missing_is_told(
    cli: Cli, signed_out: FakeServer, words: tuple[str, ...], stdin: str, says: str
) -> None:
    output = cli(*words, stdin=stdin)
    assert (output.code, says in output.err) == (1, True)


@pytest.mark.req("NODQ-98")
def test_contexts_are_listed_without_keys_and_chosen(cli: Cli, signed_out: FakeServer) -> None:
    assert "nodus login" in cli("config", "get-contexts").err
    for name in ("one", "two"):
        cli("login", "--context", name, "--server", signed_out.address, "--key", TOKEN, "-p", f"p-{name}")
    listed = cli("config", "get-contexts").out
    assert TOKEN not in listed
    assert [line.split() for line in listed.splitlines()] == [
        ["CURRENT", "NAME", "SERVER", "ORG", "PROJECT"],
        ["one", signed_out.address, "p-one"],
        ["*", "two", signed_out.address, "p-two"],
    ]
    assert cli("config", "use-context", "one").out == "Now using context one.\n"
    assert cli("get", "ar").err == "No agentruns in project p-one.\n"
    assert cli("--context", "two", "get", "ar").err == "No agentruns in project p-two.\n"
