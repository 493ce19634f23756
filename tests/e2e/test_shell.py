"""`nodus sandbox shell` as a person at a terminal meets it, over the deployed local cloud."""

from __future__ import annotations

import re
from collections.abc import Iterator

import boto3
import pexpect
import pytest

from localstack.endpoints import Cloud
from localstack.testing import TestCloud
from tests.e2e.conftest import PROGRAM, Place

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NAME = "shelled"
WITHIN_S = 60
PROMPT = r"\$ "


@pytest.fixture(scope="module")
def made(local_cloud: TestCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place with a sandbox."""
    place = Place(
        {**_environment(), "NODUS_CONFIG": str(local_cloud.configuration)}, tmp_path_factory.mktemp("shell")
    )
    place.nodus("create", "sandbox", NAME, "--idle-timeout", "1h")
    yield place
    place.nodus("delete", f"sandbox/{NAME}")


@pytest.fixture
def settled(made: Place) -> Place:
    """The place, where the sandbox runs, also behind a test that has stopped it."""
    made.nodus("start", f"sandbox/{NAME}")
    made.nodus("wait", f"sandbox/{NAME}", "--for=jsonpath={.status.phase}=Running", "--timeout=2m")
    return made


def _environment() -> dict[str, str]:
    from tests.e2e.conftest import ENVIRONMENT  # noqa: PLC0415

    return {**ENVIRONMENT, "TERM": "xterm"}


def shell(place: Place, *words: str) -> pexpect.spawn[str]:
    """The program at a terminal of 100 columns and 30 lines."""
    return pexpect.spawn(
        str(PROGRAM),
        ["sandbox", "shell", NAME, *words],
        env=place.environment,
        cwd=str(place.folder),
        dimensions=(30, 100),
        timeout=WITHIN_S,
        encoding="utf-8",
    )


def ends(child: pexpect.spawn[str]) -> int | None:
    """Its exit code, once it has ended."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def drop_connections(cloud: Cloud) -> int:
    """Ends every connection to a terminal, as AWS does after two hours; returns how many there were."""
    rows = boto3.client("dynamodb", **cloud.client_arguments()).scan(
        TableName=cloud.output("TableName"),
        FilterExpression="begins_with(pk, :wire) AND attribute_exists(terminal)",
        ExpressionAttributeValues={":wire": {"S": "wire#"}},
    )["Items"]
    place = f"{cloud.endpoint}/_aws/execute-api/{cloud.output('LinkApiId')}/{cloud.output('LinkApiStage')}"
    management = boto3.client(
        "apigatewaymanagementapi", **{**cloud.client_arguments(), "endpoint_url": place}
    )
    for row in rows:
        management.delete_connection(ConnectionId=row["id"]["S"])
    return len(rows)


@pytest.mark.req("NOD-444", "NOD-409")
def test_a_person_types_interrupts_resizes_and_leaves(settled: Place) -> None:
    child = shell(settled)
    child.expect(PROMPT)
    child.sendline("echo $((40 + 2)); stty size; echo $TERM")
    child.expect("42\r\n30 100\r\nxterm\r\n")
    child.setwinsize(41, 123)
    child.sendline("stty size")
    child.expect("41 123\r\n")
    child.sendline("""sh -c 'echo be""gun; exec sleep 1000'""")
    child.expect("begun")
    child.sendcontrol("c")
    child.sendline("echo after $?")
    child.expect("after 130")
    child.sendline("exit 7")
    assert ends(child) == 7


@pytest.mark.req("NOD-444")
def test_a_session_survives_a_dropped_connection(settled: Place, local_cloud: TestCloud) -> None:
    child = shell(settled)
    child.expect(PROMPT)
    child.sendline("kept=treasure; echo re''ady")
    child.expect("ready")
    child.sendline("for n in $(seq 1 40); do echo line-$n; sleep 0.1; done; echo o''ver")
    child.expect("line-3\r\n")
    assert drop_connections(local_cloud.cloud) == 1
    for number in range(4, 41):
        child.expect(rf"^line-{number}\r\n" if number > 4 else r"line-4\r\n")
    child.expect("over")
    child.sendline("echo $kept")
    child.expect("treasure")
    child.sendline("exit")
    assert ends(child) == 0


@pytest.mark.req("NOD-444")
def test_one_detaches_and_comes_back_and_a_second_one_watches(settled: Place) -> None:
    child = shell(settled, "--cwd", "/tmp")
    child.expect(PROMPT)
    child.sendline("pwd; echo m''ark")
    child.expect("/tmp\r\nmark")
    child.send("\r~.")
    child.expect(r"--attach (t-[\w-]+)")
    assert isinstance(child.match, re.Match)
    name = child.match.group(1)
    assert ends(child) == 0
    assert name in settled.nodus("sandbox", "terminals", NAME)
    back, watcher = shell(settled, "--attach", name), shell(settled, "--attach", name)
    for each in (back, watcher):
        each.expect("mark")  # what was shown before
    back.sendline("echo se''en by all")
    for each in (back, watcher):
        each.expect("seen by all")
    assert "cancelling" in settled.nodus("sandbox", "cancel", NAME, name)
    assert [ends(back), ends(watcher)] == [1, 1]


def test_a_command_has_the_terminal_and_its_exit_code_comes_back(settled: Place) -> None:
    child = shell(settled, "--", "test -t 0 && test -t 1 && echo a terminal; exit 4")
    child.expect("a terminal")
    assert ends(child) == 4


def test_without_a_terminal_it_is_refused(settled: Place) -> None:
    assert "needs a terminal" in settled.nodus("sandbox", "shell", NAME, code=1)


def test_a_program_drives_one_and_both_ways(settled: Place) -> None:
    script = f"""
import asyncio
import nodus

with nodus.Sandbox.from_name({NAME!r}).terminal(size=(90, 20)) as terminal:
    terminal.write("python3 -q\\n")
    terminal.read_until(">>> ")
    terminal.write("import os; os.get_terminal_size()\\n")
    print(terminal.read_until("lines=20)").count(b"columns=90"))
    terminal.write("exit(3)\\n")
    terminal.write("exit $?\\n")
    for _ in terminal:
        pass
    print(terminal.state, terminal.exit_code, terminal.connections)

async def main():
    async with nodus.AsyncClient() as client:
        sandbox = nodus.AsyncSandbox.from_name({NAME!r}, client=client)
        async with await sandbox.terminal("cat") as terminal:
            await terminal.write("hello\\n")
            await terminal.read_until("hello\\r\\nhello")
        print((await client.sandboxes.wait_for({NAME!r}, "phase=Running", timeout=20)).status.phase)

asyncio.run(main())
"""
    assert settled.python(script).split("\n") == ["1", "Exited 3 1", "Running", ""]


@pytest.mark.req("NOD-438", "NOD-444")
def test_a_shell_ends_with_its_machine_and_a_stopped_one_takes_none(settled: Place) -> None:
    child = shell(settled)
    child.expect(PROMPT)
    child.sendline("echo re''ady")
    child.expect("ready")
    settled.nodus("stop", f"sandbox/{NAME}")
    child.expect("Lost")
    assert ends(child) == 1
    refused = shell(settled)
    refused.expect("SandboxNotRunning")
    assert ends(refused) == 1
