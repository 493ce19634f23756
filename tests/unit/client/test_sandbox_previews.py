"""Previews from the SDK and the command line, against the API's own routes."""

from __future__ import annotations

import asyncio

import nodus
import pytest
from nodus import errors

from tests.unit.api.test_api_sandbox_files import Files
from tests.unit.client.conftest import Cli
from tests.unit.client.test_sandbox_files import files

__all__ = ["files"]


@pytest.mark.req("NOD-417")
def test_the_sdk_gives_an_address_in_both_ways(files: Files) -> None:
    made = nodus.Sandbox.from_name("mine").preview(8000, ttl="10m")
    assert made.url.startswith("https://api.test/base/preview/")
    assert (made.port, made.sandbox, made.expires_at) == (8000, "mine", made.expiresAt)

    async def awaited() -> str:
        async with nodus.AsyncClient() as client:
            return str((await nodus.AsyncSandbox.from_name("mine", client=client).preview(8000)).url)

    assert asyncio.run(awaited()) != made.url
    with pytest.raises(errors.InvalidError, match="port"):
        nodus.Client().sandboxes.preview("mine", 0)
    files.rest.post("sandboxes/mine/stop")
    files.rest.world.settle()
    with pytest.raises(errors.SandboxNotRunningError):
        nodus.Client().sandboxes.preview("mine", 8000)


@pytest.mark.req("NOD-417")
def test_the_command_line_prints_the_address_alone(files: Files, cli: Cli) -> None:
    shown = cli("sandbox", "preview", "mine", "8000", "--ttl", "5m")
    assert shown.code == 0, shown.err
    assert shown.out.startswith("https://api.test/base/preview/")
    assert shown.out.count("\n") == 1
    assert "2030-01-01T00:0" in shown.err
    told = cli("sandbox", "preview", "mine", "8000", "-o", "json")
    assert '"kind": "SandboxPreview"' in told.out
    assert "70000" in cli("sandbox", "preview", "mine", "70000").err
    assert files.rest.commits > 0
