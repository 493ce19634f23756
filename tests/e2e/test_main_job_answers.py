"""The main job on the deployed local cloud, from the terminal: long answers, whole, and not before there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack.testing import TestCloud
from tests.e2e.conftest import ENVIRONMENT, Place

pytestmark = [pytest.mark.timeout(180, func_only=True), pytest.mark.integration]

AGENT = """
apiVersion: nodus.dev/v1
kind: Agent
metadata: {name: e2e-verbose}
spec:
  setup: sleep 3
  model: {access: OnDemand, name: anthropic/claude-sonnet-5-5}
"""
ANSWER = ("a" + "🙂" * 2499 + "xyz").encode()


@pytest.fixture
def terminal(local_cloud: TestCloud, tmp_path: Path) -> Place:
    return Place(ENVIRONMENT | {"NODUS_CONFIG": str(local_cloud.configuration)}, tmp_path)


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
