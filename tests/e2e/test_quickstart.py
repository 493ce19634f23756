"""The first page of the documentation, typed as it stands there."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Named, Place
from tests.unit.client.manifests import NEX_04, NEX_07

# The session's cloud may be started by whichever test comes first: that is not the test's own time.
pytestmark = pytest.mark.timeout(180, func_only=True)
SUCCEEDED = "--for=jsonpath={.status.phase}=Succeeded"


@pytest.mark.req("NOD-482", "NOD-483", "NOD-484", "NOD-490", "NOD-491", "NOD-052")
def test_nex_04_to_10_define_run_wait_and_read(place: Place, named: Named) -> None:
    (place.folder / "agent.yaml").write_text(NEX_04)
    (place.folder / "run.yaml").write_text(NEX_07)
    run = named("hello-agent-run")
    assert place.nodus("apply", "-f", "agent.yaml").startswith("agent/hello-agent ")
    assert place.nodus("apply", "-f", "agent.yaml") == "agent/hello-agent unchanged\n"
    assert place.nodus("apply", "-f", "run.yaml") == f"agentrun/{run} created\n"
    lines = place.nodus("agentrun", "steps", run, "--follow").splitlines()
    assert lines[-1].startswith(f"run        agentrun/{run} Succeeded")
    assert (
        place.nodus("wait", f"agentrun/{run}", SUCCEEDED, "--timeout=8m") == f"agentrun/{run} condition met\n"
    )
    assert place.nodus("apply", "-f", "run.yaml") == f"agentrun/{run} unchanged\n"

    shown = json.loads(place.nodus("get", f"agentrun/{run}", "-o", "json"))
    (turn,) = shown["status"]["turns"]
    assert turn["chosenBy"] in {"jev", "fallback"}
    answer = place.nodus("agentrun", "answer", run)
    assert "Python" in answer
    assert answer.startswith(shown["status"]["answer"]["preview"])
    steps = json.loads(place.nodus("agentrun", "steps", run, "-o", "json"))["items"]
    assert [step["state"] for step in steps] == ["Completed"] * len(steps)
    assert [step["name"] for step in steps][:3] == ["sandbox", "setup", "turn-1.route"]
    assert place.nodus("delete", f"agentrun/{run}") == f"agentrun/{run} deleted\n"
    assert "Error (NotFound)" in place.nodus("get", f"agentrun/{run}", code=1)


@pytest.mark.req("NOD-488", "NODQ-73", "NOD-495")
def test_a_run_without_a_file_is_cancelled_and_a_wait_for_it_ends_with_2(place: Place, named: Named) -> None:
    run = named("triage")
    slow = NEX_04.replace("hello-agent", "e2e-slow").replace(
        "printf 'workspace-ready\\n' > ready.txt", "sleep 15"
    )
    place.nodus("apply", "-f", "-", stdin=slow)
    words = ("create", "agentrun", run, "--agent", "e2e-slow", "--prompt", "Say hi")
    assert place.nodus(*words) == f"agentrun/{run} created\n"
    for_setup = "--for=jsonpath={.status.phase}=Running"
    place.nodus("wait", f"ar/{run}", for_setup, "--timeout=2m")
    assert place.nodus("cancel", f"ar/{run}").startswith(f"agentrun/{run} cancel")
    assert "will not become Succeeded" in place.nodus("wait", f"ar/{run}", SUCCEEDED, "--timeout=2m", code=2)


@pytest.mark.req("NOD-503", "NOD-511", "NOD-513", "NOD-515")
def test_nex_11_from_python(place: Place) -> None:
    printed = place.python(
        """
import nodus

agent = nodus.ClaudeAgent("e2e-helper", system="You are careful.", families=["haiku", "sonnet"])
run = agent.submit("Use the shell to print the Python version")
status = run.wait(timeout=120)
print(status.phase, len(run.steps()) > 2, run.answer() != "")
with nodus.Client() as client:
    client.agentruns.delete(run.name)
    client.agents.delete("e2e-helper")
"""
    )
    assert printed == "Succeeded True True\n"


@pytest.mark.req("NOD-503", "NOD-511", "NOD-512", "NOD-513", "NOD-515")
def test_nex_11_from_python_awaited(place: Place) -> None:
    printed = place.python(
        """
import asyncio
import nodus


async def main():
    async with nodus.AsyncClient() as client:
        agent = nodus.AsyncClaudeAgent("e2e-awaited", client=client, system="You are careful.")
        prompt = "Use the shell to print the Python version"
        answer, run = await asyncio.gather(agent.remote(prompt), agent.submit(prompt))
        status = await run.wait(timeout=120)
        print(status.phase, len(await run.steps()) > 2, answer == await run.answer() != "")
        again = await nodus.AsyncAgentRun.from_name(run.name, client=client).status
        print(again.phase == status.phase)
        async for found in client.agentruns.list(field_selector="spec.agent=e2e-awaited"):
            await client.agentruns.delete(found.metadata.name)
            await client.agentruns.wait_gone(found.metadata.name, timeout=60)
        await client.agents.delete("e2e-awaited")


asyncio.run(main())
"""
    )
    assert printed == "Succeeded True True\nTrue\n"


@pytest.mark.req("NOD-500", "FLD-17")
def test_refusals_name_reason_field_and_line(place: Place) -> None:
    text = NEX_04.replace("hello-agent", "e2e-refused").replace("workingDir", "workingDri")
    refused = place.nodus("apply", "-f", "-", stdin=text, code=1)
    assert "Error (Invalid): " in refused
    assert "spec.workingDri: " in refused
    assert "(standard input line 6)" in refused
    assert "Error (NotFound): " in place.nodus("get", "agent/e2e-refused", code=1)
