"""Every block of docs/sdk.md runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import nodus
import pytest

from tests.unit.client.fake_server import FakeServer

PAGE = Path(__file__).parents[3] / "docs" / "sdk.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_of_the_page(number: int, server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    with nodus.Client() as client:
        client.agents.apply(
            {"metadata": {"name": "helper"}, "spec": {}}
        )  # which the page makes in its first block
    before = len(server.seen)
    exec(compile(BLOCKS[number], f"{PAGE.name} block {number + 1}", "exec"), {})
    assert len(server.seen) > before
    assert "Traceback" not in capsys.readouterr().err
