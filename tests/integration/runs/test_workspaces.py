"""Each run has a sandbox of its own, prepared anew, closed to the network, and gone after it."""

import pytest

from tests.integration.runs.asked import requests
from tests.integration.runs.machine import gate, room
from tests.integration.runs.person import Person, Run, in_turn, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(120, func_only=True)

LOOK = "pwd; cat ready.txt setups.txt; ls /work/x; cat /tmp/x 2>/dev/null || echo nothing"


def sandbox_of(run: Run) -> str:
    run.reaches("sandbox", "Completed")
    return run.status()["sandbox"]["name"]


@pytest.mark.req("NOD-042", "NOD-043", "NOD-050", "NOD-017", "NOD-020", "NOD-157", "NOD-158", "NOD-159")
def test_runs_at_once_and_after_each_other_share_no_file(person: Person) -> None:
    person.agent("own-room", workingDir="/work/x", setup="echo ready > ready.txt; echo once >> setups.txt")
    write = "echo {} > mine.txt; echo {} > /tmp/x; touch wrote; {}"
    runs = [
        person.start("own-room", in_turn(write.format(word, word, gate()), f"{LOOK}; cat mine.txt"))
        for word in ("plum", "pear")
    ]
    rooms = [room(person.cloud, sandbox_of(run)) for run in runs]
    assert rooms[0] != rooms[1]
    for own in rooms:
        until((own.workspace / "wrote").exists, bool)
    for own in rooms:
        own.open_gate()
    for run, word, other in ((runs[0], "plum", "pear"), (runs[1], "pear", "plum")):
        run.succeeded()
        lines = run.answer().splitlines()
        assert lines[:3] == ["/work/x", "ready", "once"]
        assert word in lines
        assert other not in run.answer()
        assert names(run.steps())[:3] == ["sandbox", "setup", "model.1"]
        run.cleared()
    until(lambda: all(own.is_gone() for own in rooms), bool)

    later = person.start("own-room", in_turn(LOOK))
    later.succeeded()
    assert later.answer().splitlines()[:3] == ["/work/x", "ready", "once"]
    assert "nothing" in later.answer()
    assert not {"mine.txt", "wrote", "go"} & set(later.answer().split())
    assert names(later.steps())[:3] == ["sandbox", "setup", "model.1"]


@pytest.mark.req("NOD-020", "NOD-076", "NOD-162", "NOD-158")
def test_what_the_setup_printed_is_a_step(person: Person) -> None:
    person.agent(
        "talkative", setup="echo making ready; echo 'and a warning' >&2; printf 'workspace-ready\\n' > r.txt"
    )
    run = person.start("talkative", in_turn("pwd", "cat r.txt"))
    run.succeeded()
    setup = run.step("setup")
    assert (setup["state"], setup["exitCode"], setup["guarantee"]) == ("Completed", 0, "AtMostOnce")
    assert setup["preview"] == "making ready\nand a warning\n[exit code 0]"
    assert run.step("tool.run_command.1")["preview"].startswith("/workspace\n")
    assert run.answer().startswith("workspace-ready\n")


@pytest.mark.req("NOD-163", "NOD-076", "NOD-162", "NOD-044")
def test_a_setup_that_fails_ends_the_run_before_any_model_is_asked(person: Person) -> None:
    person.agent("broken", setup="echo cannot; exit 3", model={"access": "Nodus"})
    run = person.start("broken", "Say hello.")
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "SetupFailed")
    assert status["cost"]["totalUSD"] == "0"
    assert names(run.steps()) == ["sandbox", "setup"]
    setup = run.step("setup")
    assert (setup["state"], setup["exitCode"]) == ("Failed", 3)
    assert "cannot" in setup["preview"]
    assert requests(person.cloud, run.mark) == []
    until(room(person.cloud, status["sandbox"]["name"]).is_gone, bool)


@pytest.mark.req("NOD-457", "NOD-022")
def test_deny_means_no_network_and_no_way_to_the_machine(person: Person) -> None:
    person.agent("curious")
    port = person.cloud.cloud.endpoint.rpartition(":")[2]
    dial = (
        "import socket, sys\n"
        f"for host, port in (('github.com', 443), ('1.1.1.1', 53), ('127.0.0.1', {port}), ('169.254.169.254', 80)):\n"
        "    try:\n"
        "        socket.create_connection((host, port), 3); print('REACHED', host)\n"
        "    except OSError as error:\n"
        "        print('no way to', host)\n"
    )
    script = "printf %b '" + dial.replace("'", '"').replace("\n", "\\n") + "' > dial.py; python3 dial.py"
    run = person.start(
        "curious", in_turn(script, "ls /sys/class/net 2>/dev/null || cut -d: -f1 /proc/net/dev; env")
    )
    status = run.succeeded()
    said = run.step("tool.run_command.1")["preview"]
    assert "REACHED" not in said
    assert said.count("no way to") == 4
    assert "eth" not in run.answer()
    assert "NODUS_" not in run.answer()
    assert "AWS_" not in run.answer()
    assert status["sandbox"]["egress"] == "Deny"
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "Isolated": "True",
        "EgressEnforced": "True",
        "ImagePinned": "False",
    }
