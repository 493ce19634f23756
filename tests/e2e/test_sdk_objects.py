"""Every call of the SDK's resources against the deployed local cloud, by those who block and those who await."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Place

pytestmark = pytest.mark.integration


@pytest.mark.req("NOD-469", "NOD-471")
def test_objects_are_changed_and_watched(terminal: Place) -> None:
    printed = terminal.python(
        """
import nodus

with nodus.Client() as client:
    agents = client.agents
    made = agents.create("sdk-watched", {"system": "one"}, labels={"test": "sdk"})
    changes = agents.watch(label_selector="test=sdk")
    print(next(changes).type)
    read = agents.get("sdk-watched").to_dict()
    agents.update(read | {"spec": {"system": "two"}})
    print(next(changes).object.spec.system)
    try:
        agents.update(read | {"spec": {"system": "three"}})
    except nodus.errors.ConflictError as error:
        print(error.reason, error.request_id is not None)
    print(agents.patch("sdk-watched", {"spec": {"system": "four"}}, dry_run=True).spec.system)
    print(agents.wait_for("sdk-watched", "condition=Ready", timeout=20).spec.system)
    agents.delete("sdk-watched")
    agents.wait_gone("sdk-watched", timeout=20)
    last = next(changes)
    print(last.type, last.object.spec.system)
    changes.close()
    try:
        next(agents.watch(resource_version="1", resume=False))
    except nodus.errors.ExpiredError as error:
        print(error.code, error.reason)
"""
    )
    assert printed.split("\n") == [
        "ADDED",
        "two",
        "Conflict True",
        "four",
        "two",
        "DELETED two",
        "410 Expired",
        "",
    ]


@pytest.mark.req("NOD-360", "NOD-361", "NOD-363", "NOD-518", "NOD-475")
def test_batches_groups_and_sandboxes_awaited(terminal: Place) -> None:
    printed = terminal.python(
        """
import asyncio
import nodus


async def main():
    async with nodus.AsyncClient() as client:
        await client.agents.apply({"metadata": {"name": "sdk-batch"}, "spec": {}})
        spec = {"agent": "sdk-batch", "input": "Use the shell to print the Python version"}
        runs = [{"metadata": {"name": f"sdk-batch-{n}"}, "spec": spec} for n in range(3)]
        first = await client.agentruns.create_many(runs, key="sdk-batch")
        again = await client.agentruns.create_many(runs, key="sdk-batch")
        print([run.metadata.uid for run in first] == [run.metadata.uid for run in again], len(first))
        bad = [{"metadata": {"name": "sdk-batch-9"}, "spec": spec}, {"metadata": {"name": "x"}, "spec": {"agnt": "a"}}]
        try:
            await client.agentruns.create_many(bad)
        except nodus.errors.InvalidError as error:
            print([cause.field for cause in error.causes])
        ended = set()
        async for event in client.agentruns.watch(field_selector="spec.agent=sdk-batch", timeout=120):
            if event.object.status.phase == "Succeeded":
                ended.add(event.object.metadata.name)
            if len(ended) == 3:
                break
        print(sorted(ended))
        print((await nodus.AsyncAgentRun.from_name("sdk-batch-0", client=client).team()).summary.state)
        group = await nodus.AsyncAgentGroup.create("sdk-group", client=client, agent="sdk-batch", max_active=2)
        for act in (group.wait(timeout=60), group.results(), group.submit("x", key="a")):
            try:
                await act
            except nodus.errors.NotAvailableError as error:
                print(error.reason)
        print((await group.seal()).phase, (await client.agentgroups.get("sdk-group")).spec.sealed)
        await group.delete()
        sandbox = await nodus.AsyncSandbox.create("sdk-sandbox", client=client, cpu=1, memory=2, ttl="24h")
        print((await client.sandboxes.wait_for("sdk-sandbox", "phase=Running", timeout=60)).status.phase)
        ran = await sandbox.run("echo $((6*7)); exit 4")
        print(ran.state, ran.exit_code, ran.output.strip())
        print((await sandbox.stop()).phase, (await sandbox.start()).phase)
        await sandbox.delete()
        for run in first:
            await client.agentruns.delete(run.metadata.name)
            await client.agentruns.wait_gone(run.metadata.name, timeout=60)
        await client.agents.delete("sdk-batch")


asyncio.run(main())
"""
    )
    assert printed.split("\n") == [
        "True 3",
        "['items[1].spec.agent', 'items[1].spec.input', 'items[1].spec.agnt']",
        "['sdk-batch-0', 'sdk-batch-1', 'sdk-batch-2']",
        "Succeeded",
        "NotAvailable",
        "NotAvailable",
        "NotAvailable",
        "Pending True",
        "Running",
        "Exited 4 42",
        "Paused Running",
        "",
    ]
