"""The main job on the deployed local cloud, from the terminal: long answers, whole, and not before there is one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.e2e.conftest import Place

pytestmark = [pytest.mark.timeout(180, func_only=True), pytest.mark.integration]

AGENT = """
apiVersion: nodus.dev/v1
kind: Agent
metadata: {name: e2e-verbose}
spec:
  setup: sleep 3
  model: {access: OnDemand, name: anthropic/claude-sonnet-5-5}
"""
LARGEST_REPLY = 4_000_000
ANSWER = ("a" + "🙂" * 2499 + "xyz").encode()


@pytest.mark.req("NOD-066", "NOD-065", "NOD-067", "NOD-490")
def test_ten_thousand_bytes_are_printed_whole_and_previewed_between_characters(terminal: Place) -> None:
    terminal.nodus("apply", "-f", "-", stdin=AGENT)
    words = ("create", "agentrun", "e2e-faces", "--agent", "e2e-verbose", "--prompt", "Draw 2,500 faces.")
    terminal.nodus(*words)
    try:
        early = terminal.nodus("agentrun", "answer", "e2e-faces", code=1)
        assert "Error (AnswerNotReady): " in early
        terminal.nodus(
            *("wait", "agentrun/e2e-faces", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=2m")
        )
        assert terminal.nodus("agentrun", "answer", "e2e-faces").encode().rstrip(b"\n") == ANSWER
        preview = terminal.nodus("get", "agentrun/e2e-faces", "-o", "jsonpath={.status.answer.preview}")
        assert preview.rstrip("\n").encode() == ANSWER[:4093]
    finally:
        terminal.nodus("delete", "agentrun/e2e-faces")


PYTHON = """
import hashlib, nodus

with nodus.Client() as client:
    phase, answer = client.agentruns.get({name!r}).status.phase, client.agentruns.answer({name!r})
print(phase, hashlib.sha256(answer.encode()).hexdigest())
"""


@pytest.mark.req("FLD-06", "NOD-066", "NOD-065", "NOD-490")
@pytest.mark.parametrize(
    ("text", "said", "times"), [("🙂", "76,800", 76_800), ("abcdefg ", "2,097,152", 2**21)]
)
def test_an_answer_of_up_to_sixteen_megabytes_is_complete(
    terminal: Place, text: str, said: str, times: int
) -> None:
    answer = (text * times).encode()
    terminal.nodus("apply", "-f", "-", stdin=AGENT)
    name = f"e2e-megabytes-{times}"
    words = ("create", "agentrun", name, "--agent", "e2e-verbose")
    terminal.nodus(*words, "--prompt", f"Say {text} {said} times")
    try:
        terminal.nodus(
            *("wait", f"agentrun/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=2m")
        )
        assert terminal.nodus("agentrun", "answer", name).encode() == answer
        shown = terminal.python(PYTHON.format(name=name))
        assert shown == f"Succeeded {hashlib.sha256(answer).hexdigest()}\n"
        check_address(terminal, name, answer)
        steps = json.loads(terminal.nodus("agentrun", "steps", name, "-o", "json"))["items"]
        tools = {step["name"]: (step["rawBytes"], step["state"]) for step in steps if step["kind"] == "tool"}
        if text == "🙂":
            assert tools == {
                "turn-1.tool.run_command.1": (3 * 2**20, "Completed"),
                "turn-1.tool.read_file.2": (3 * 2**20, "Completed"),
            }
    finally:
        terminal.nodus("delete", f"agentrun/{name}")


def check_address(terminal: Place, name: str, answer: bytes) -> None:
    """What no reply can hold is at an address that needs no key, elsewhere; anything else is the reply."""
    context = yaml.safe_load(Path(terminal.environment["NODUS_CONFIG"]).read_text())["contexts"]["local"]
    url = f"{context['server']}/apis/nodus.dev/v1/namespaces/default/agentruns/{name}/answer"
    reply = httpx2.get(url, headers={"Authorization": f"Bearer {context['token']}"}, timeout=60)
    if len(answer) <= LARGEST_REPLY:
        assert (reply.status_code, reply.content) == (200, answer)
        return
    assert (reply.status_code, reply.content) == (307, b"")
    address = reply.headers["location"]
    assert "Signature=" in address
    assert httpx2.get(address, timeout=60).content == answer
    assert httpx2.get(address.partition("?")[0], timeout=60).status_code == 403
