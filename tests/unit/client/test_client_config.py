"""Contexts, the environment, and who may read the key."""

from __future__ import annotations

import json
import os
import pwd
import stat
from pathlib import Path

import nodus
import pytest
from nodus import _config, errors

from localstack import tenant
from localstack.processes import ProcessError

ACCOUNT = Path(pwd.getpwuid(os.getuid()).pw_dir)

STORED = """
current-context: local
contexts:
  local: {server: "https://a.example/base/", org: default, project: web, token: secret-a}
  other: {server: "https://b.example", token: secret-b}
"""


@pytest.fixture
def stored(config_file: Path) -> Path:
    config_file.parent.mkdir()
    config_file.write_text(STORED)
    return config_file


@pytest.mark.req("NODQ-98", "NOD-515")
def test_the_current_context_is_used(stored: Path) -> None:
    found = nodus.Client().settings
    assert (found.server, found.org, found.project) == ("https://a.example/base", "default", "web")
    assert found.token == "secret-a"


@pytest.mark.req("NODQ-98")
def test_a_context_can_be_named(stored: Path) -> None:
    found = nodus.Client(context="other").settings
    assert (found.server, found.org, found.project, found.token) == (
        "https://b.example",
        None,
        "default",
        "secret-b",
    )


@pytest.mark.req("NODQ-98")
def test_the_environment_overrides_and_arguments_win(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SERVER": "http://c", "TOKEN": "t", "ORG": "o", "PROJECT": "p"}.items():
        monkeypatch.setenv(f"NODUS_{name}", value)
    found = nodus.Client(project="mine").settings
    assert (found.server, found.token, found.org, found.project) == ("http://c", "t", "o", "mine")


def test_json_is_read_too(stored: Path) -> None:
    stored.write_text('{"current-context": "x", "contexts": {"x": {"server": "http://x", "token": "t"}}}')
    assert nodus.Client().settings.server == "http://x"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("contexts: [", "not YAML"),
        ("- 1", "nodus login"),
        ("contexts: [1]", "mapping"),
        ("contexts: {a: {org: x}}", "'a' has no `server`"),
        ("current-context: gone", "'gone'"),
    ],
)
def test_a_broken_file_is_named(stored: Path, text: str, says: str) -> None:
    stored.write_text(text)
    with pytest.raises(errors.ConfigError, match=says):
        _ = nodus.Client().settings


@pytest.mark.req("NOD-481")
def test_without_a_server_or_key_the_way_is_shown(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.ConfigError, match="nodus login"):
        _ = nodus.Client().settings
    monkeypatch.setenv("NODUS_SERVER", "http://x")
    with pytest.raises(errors.ConfigError, match="nodus login") as caught:
        _ = nodus.Client().settings
    assert caught.value.reason == "NotSignedIn"


@pytest.mark.parametrize("token", ["a\nb", "schlüssel", " x"])
def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent(config_file: Path, token: str) -> None:
    with pytest.raises(errors.ConfigError, match="copy it again"):
        _ = nodus.Client(server="http://x", token=token).settings


def test_an_address_needs_its_scheme() -> None:
    with pytest.raises(errors.ConfigError, match="https://"):
        _ = nodus.Client(server="nodus.example.com", token="t").settings


def test_what_is_saved_is_read_back_and_private(config_file: Path) -> None:
    context = _config.Context("https://x", 'tök"en', None, "p")
    _config.load().with_context("a b: c", context).save()
    found = _config.load()
    assert (dict(found.contexts), found.current) == ({"a b: c": context}, "a b: c")
    assert stat.S_IMODE(config_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(config_file.parent.stat().st_mode) == 0o700
    assert [path.name for path in config_file.parent.iterdir()] == [config_file.name]


def test_a_failed_save_leaves_the_file_and_no_draft(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(errors.ConfigError, match=r"disk full.*NODUS_CONFIG"):
        _config.load().with_context("x", _config.Context("http://x", "t")).save()
    assert [path.name for path in stored.parent.iterdir()] == [stored.name]
    assert stored.read_text() == STORED


def test_the_key_is_in_no_representation(stored: Path) -> None:
    assert "secret-a" not in repr(_config.load()) + repr(nodus.Client().settings)


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"NODUS_CONFIG": "/x/y"}, Path("/x/y")),
        ({"XDG_CONFIG_HOME": "/xdg"}, Path("/xdg/nodus/config.yaml")),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, Path("/h/.config/nodus/config.yaml")),
        ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, Path("/h/.config/nodus/config.yaml")),
        ({"HOME": ""}, ACCOUNT / ".config/nodus/config.yaml"),
        ({}, ACCOUNT / ".config/nodus/config.yaml"),
    ],
)
def test_the_file_s_place_is_the_same_for_the_client_and_for_make_up(
    environ: dict[str, str], path: Path
) -> None:
    assert _config.config_path(environ) == path
    assert tenant.configuration_path(environ) == path


def test_a_user_without_a_home_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)  # in no list of users
    with pytest.raises(errors.ConfigError, match="NODUS_CONFIG"):
        _config.config_path({})
    with pytest.raises(ProcessError, match="NODUS_CONFIG"):
        tenant.configuration_path({})


@pytest.mark.req("NODQ-98")
def test_what_other_programs_noted_in_the_file_is_kept(config_file: Path) -> None:
    config_file.parent.mkdir()
    config_file.write_text(
        "theme: dark\ncontexts: {a: {server: 'http://a', token: t, note: {since: 2020, ok: true}}}\n"
    )
    _config.load().with_context("b", _config.Context("http://b", "u")).save()
    kept = json.loads(config_file.read_text())
    assert kept["theme"] == "dark"
    assert kept["contexts"]["a"]["note"] == {"since": 2020, "ok": True}
    assert kept["current-context"] == "b"
