"""Secrets from the command line: stored, listed by their field names, never shown or repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer

CANARY = "plum-9f31-KITE-77aa"
MANIFEST = f"""\
apiVersion: nodus.dev/v1
kind: Secret
metadata: {{name: anthropic-key}}
spec:
  data:
    ANTHROPIC_API_KEY: {CANARY}
"""


def data_of(server: FakeServer, name: str = "anthropic-key") -> dict[str, str]:
    return server.object("secrets", name)["spec"]["data"]


@pytest.mark.req("NODQ-101")
def test_literals_and_files_become_fields(cli: Cli, server: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "id_ed25519").write_bytes(b"-----BEGIN\r\nkey\n")
    made = cli(
        *("create", "secret", "anthropic-key", "--from-literal", f"ANTHROPIC_API_KEY={CANARY}=="),
        *("--from-file", str(tmp_path / "id_ed25519"), "--from-file", "PIN=-"),
        stdin="1234\n",
    )
    assert made == (0, "secret/anthropic-key created\n", "")
    assert data_of(server) == {
        "ANTHROPIC_API_KEY": f"{CANARY}==",
        "id_ed25519": "-----BEGIN\r\nkey\n",
        "PIN": "1234\n",
    }


@pytest.mark.req("NODQ-101", "NOD-465")
def test_apply_and_get_show_field_names_only(cli: Cli, server: FakeServer) -> None:
    assert cli("apply", "-f", "-", stdin=MANIFEST).out == "secret/anthropic-key created\n"
    assert cli("apply", "-f", "-", stdin=MANIFEST).out == "secret/anthropic-key unchanged\n"
    assert data_of(server) == {"ANTHROPIC_API_KEY": CANARY}
    shown = cli("get", "secret/anthropic-key", "-o", "yaml").out
    assert "- ANTHROPIC_API_KEY" in shown
    table = cli("get", "secrets").out
    assert table.split()[:4] == ["NAME", "FIELDS", "REVISION", "AGE"]
    assert "ANTHROPIC_API_KEY" in table
    assert CANARY not in shown + table
    assert cli("delete", "secret/anthropic-key").out == "secret/anthropic-key deleted\n"


@pytest.mark.req("FLD-14")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a value"),
        (["--from-literal", CANARY], "takes FIELD=VALUE"),
        (["--from-literal", f"={CANARY}"], "takes FIELD=VALUE"),
        (["--from-literal", f"A={CANARY}", "--from-literal", f"A={CANARY}"], "'A' is given twice"),
        (["--from-file", "A="], "takes FIELD=FILE"),
        (["--from-file", "-"], "takes FIELD=FILE"),
        (["--from-file", "A=no-such-file"], "no-such-file: No such file"),
    ],
)
def test_a_command_line_without_meaning_sends_nothing_and_repeats_nothing(
    cli: Cli, server: FakeServer, words: list[str], message: str
) -> None:
    refused = cli("create", "secret", "anthropic-key", *words)
    assert refused.code == 1
    assert message in refused.err
    assert CANARY not in refused.out + refused.err
    assert server.seen == []


def test_a_file_that_is_no_text_is_refused(cli: Cli, server: FakeServer, tmp_path: Path) -> None:
    for name, content in (("binary", b"\xff\xfe"), ("large", b"x" * 65_537)):
        (tmp_path / name).write_bytes(content)
        refused = cli("create", "secret", "s", "--from-file", f"A={tmp_path / name}")
        assert (refused.code, refused.err.startswith("Error (FileNotRead)")) == (1, True)
    assert server.seen == []
