"""The daemon as a process: its secrets, its ends, and what it leaves behind.

These daemons have no container of their own, and two at once would give their commands the same groups: so the
tests stand in one file, which runs in one process.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sandboxd.settings import Settings, SettingsError

from tests.integration.sandboxd.daemon import (
    DAEMON,
    Daemon,
    alive,
    command_line,
    same_python_of_the_system,
    with_daemon,
)
from tests.unit.sandboxd.commands import pids_in, until
from tests.unit.sandboxd.link_server import ENROL_CODE, WARM, WARM_CODE

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "operator-secret",
    "NODUS_PASS_ENV": "JAVA_HOME",
    "JAVA_HOME": "/opt/java",
}

WARM_ENVIRON = {"NODUS_SANDBOX_ID": WARM, "NODUS_ENROL_CODE": WARM_CODE, "NODUS_WARM": "1"}

WITHOUT_FILTERS = f"""
import os, sys
sys.path.insert(0, {str(DAEMON.parents[1])!r})
from sandboxd.seccomp.install import install
from sandboxd.seccomp.rules import Refuse, RefuseValues, build
from sandboxd.seccomp.syscalls import Processor, this_processor
real = this_processor()
numbers = {{"prctl": {{"x86_64": 157, "aarch64": 167}}[real.name], "seccomp": real.numbers["seccomp"]}}
rules = [RefuseValues("prctl", 0, (22,), errno=22), Refuse("seccomp", errno=22)]
install(build(Processor(real.name, real.audit_arch, numbers), rules))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Goes on as the program that it is given, on a kernel that takes no filter of system calls any more."""


FETCH = """python3 -c "
import urllib.error, urllib.request
try: print(urllib.request.urlopen('http://{}/', timeout=20).read())
except urllib.error.HTTPError as error: print(error.code, error.read().decode())
" 2>&1"""


def test_commands_see_neither_the_daemons_secrets_nor_its_files(tmp_path: Path) -> None:
    async def story(running: Daemon) -> None:
        pid = running.process.pid
        probe = f"env; cat /proc/{pid}/environ; ls -l /proc/{pid}/fd; cat /proc/{pid}/maps; grep -c x /proc/{pid}/mem"
        output = (await running.shell(probe))["output"]
        assert output.count("Permission denied") >= 2
        for secret in (ENROL_CODE, "operator-secret", "NODUS_", "/state/"):
            assert secret not in output.replace(str(tmp_path), "")
        assert "JAVA_HOME=/opt/java" in output
        if os.geteuid() == 0:  # who may look: nobody else can, not even its own user
            assert Path(f"/proc/{pid}/environ").read_bytes().strip(b"\0") == b""

    with_daemon(tmp_path, story, **SECRETS)


def test_commands_have_no_capability_and_get_no_new_privilege(tmp_path: Path) -> None:
    async def story(running: Daemon) -> str:
        return (await running.shell("grep -E '^(Cap|NoNewPrivs)' /proc/self/status"))["output"]

    lines = dict(line.split(":\t") for line in with_daemon(tmp_path, story).splitlines())
    assert lines.pop("NoNewPrivs") == "1"
    held = {name: value for name, value in lines.items() if int(value, 16) and name != "CapBnd"}
    assert held == {}


@pytest.mark.req("FLD-09")
def test_a_process_without_any_sign_of_its_command_is_ended_with_it(tmp_path: Path) -> None:
    async def story(running: Daemon) -> None:
        # The subshell ends at once: session, environment and parent are gone, only the timing is left.
        hidden = "(env -i /usr/bin/setsid /bin/sh -c '(/bin/sleep 90 &) ; /bin/sleep 91' &) ; sleep 92"
        result = await running.shell(hidden, timeoutS=1)
        assert result["reason"] == "timeout"
        assert pids_in(running.workspace) == []

    with_daemon(tmp_path, story)


@pytest.mark.req("FLD-09")
def test_a_sign_of_stop_ends_everything_and_tells_what_was_running(tmp_path: Path) -> None:
    async def story(running: Daemon) -> None:
        await running.shell("setsid nohup sleep 80 >/dev/null 2>&1 & exit 0")
        command_id = await running.start("trap '' TERM; echo before; while :; do sleep 0.1; done")
        await until(lambda: len(pids_in(running.workspace)) >= 2)
        running.process.send_signal(signal.SIGTERM)
        result = await running.server.result(command_id)
        assert (result["state"], result["reason"], result["output"]) == ("lost", "shutdown", "before\n")
        assert await running.exit_code() == 0
        assert pids_in(running.workspace) == []

    with_daemon(tmp_path, story)


@pytest.mark.parametrize(("status", "code"), [(410, 0), (401, 3)])
def test_a_released_sandbox_stops_by_itself(tmp_path: Path, status: int, code: int) -> None:
    async def story(running: Daemon) -> None:
        await running.start("sleep 70")
        await until(lambda: pids_in(running.workspace))
        running.server.refuse_with = status
        await running.server.ring()
        assert await running.exit_code() == code
        assert pids_in(running.workspace) == []

    with_daemon(tmp_path, story)


def test_the_hard_deadline_ends_a_daemon_that_reaches_nobody(tmp_path: Path) -> None:
    async def story(running: Daemon) -> int:
        return await running.exit_code()

    nobody = {"NODUS_LINK_HTTP": "http://127.0.0.1:9/link/v1", "NODUS_LINK_WS": "ws://127.0.0.1:9/bell"}
    assert with_daemon(tmp_path, story, await_hello=False, NODUS_HARD_DEADLINE_S="1", **nobody) == 0
    assert "stopping: deadline" in (tmp_path / "daemon.log").read_text()


def test_a_daemon_whose_launcher_is_gone_stops(tmp_path: Path) -> None:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    async def story(running: Daemon) -> int:
        theirs.close()
        async with asyncio.timeout(20):
            loop = asyncio.get_running_loop()
            mine.setblocking(False)
            asked = await loop.sock_recv(mine, 4096)
        assert asked.decode() == f"127.0.0.1:{running.server.port}"
        mine.close()
        return await running.exit_code()

    how: dict[str, Any] = {"pass_fds": [theirs.fileno()], "NODUS_DIAL_FD": str(theirs.fileno())}
    assert with_daemon(tmp_path, story, await_hello=False, **how) == 0


def test_killed_and_started_again_it_never_repeats_a_command(tmp_path: Path) -> None:
    async def first(running: Daemon) -> None:
        await running.start("echo run >> effects; sleep 60")
        await until((running.workspace / "effects").exists)
        running.process.kill()
        for pid in pids_in(running.workspace):
            os.kill(pid, signal.SIGKILL)

    async def second(running: Daemon) -> dict[str, Any]:
        return await running.shell("echo run >> effects; sleep 60")  # the same id and digest

    with_daemon(tmp_path, first)
    result = with_daemon(tmp_path, second)
    assert (result["state"], result["reason"]) == ("lost", "daemon_restarted")
    assert (tmp_path / "workspace/effects").read_text() == "run\n"


def test_what_is_wrong_with_the_environment_is_said_at_once_and_without_values() -> None:
    process = subprocess.run(
        command_line(),
        env={"NODUS_LINK_HTTP": "ftp://secret", "NODUS_HARD_DEADLINE_S": "soon", "NODUS_ISOLATION": "["},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert process.returncode == 2
    for name in (
        "NODUS_SANDBOX_ID",
        "NODUS_LINK_HTTP",
        "NODUS_LINK_WS",
        "NODUS_HARD_DEADLINE_S",
        "NODUS_ISOLATION",
    ):
        assert name in process.stderr
    assert "secret" not in process.stderr


def test_settings_hide_the_code_and_refuse_a_user_they_cannot_have(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {
        "NODUS_SANDBOX_ID": "s",
        "NODUS_LINK_HTTP": "http://x",
        "NODUS_LINK_WS": "ws://x",
        "NODUS_ENROL_CODE": ENROL_CODE,
        "NODUS_HARD_DEADLINE_S": "5",
    }
    assert ENROL_CODE not in repr(Settings.from_environ(environ))
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    assert Settings.from_environ({**environ, "NODUS_COMMAND_UID": "1234"}).user.uid is None
    with pytest.raises(SettingsError, match="NODUS_COMMAND_UID"):
        Settings.from_environ({**environ, "NODUS_COMMAND_UID": "1000"})
    for wrong in ({"NODUS_EGRESS": "Ajar"}, {"NODUS_EGRESS": "AllowList", "NODUS_EGRESS_ALLOW": "a b"}):
        with pytest.raises(SettingsError, match="are no policy"):
            Settings.from_environ({**environ, **wrong})


@as_root
@pytest.mark.skipif(same_python_of_the_system() is None, reason="needs a system Python of the same version")
class TestRootDaemon:
    """The daemon is root, commands are user 1000, as on Fargate."""

    def run(self, tmp_path: Path, story: Any, before: str = "", **environ: str) -> Any:
        for folder in (tmp_path, *tmp_path.parents):
            if folder.stat().st_uid == 0 and folder != Path("/tmp"):
                folder.chmod(folder.stat().st_mode | 0o055)
        (tmp_path / "workspace").mkdir()
        os.chown(tmp_path / "workspace", 1000, 1000)
        python = same_python_of_the_system()
        assert python is not None
        argv = command_line(python)
        if before:
            argv = [python, "-c", before, *argv]
        return with_daemon(tmp_path, story, argv=argv, NODUS_COMMAND_UID="1000", **environ)

    @pytest.mark.req("NOD-457")
    def test_it_guards_commands_and_says_so_only_when_nothing_is_open(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            assert running.server.hello is not None
            assert running.server.hello["isolation"]["guard"] == "seccomp", running.log()
            nobody = await running.shell("exec 3<>/dev/tcp/127.0.0.1/1")
            assert "Connection refused" in nobody["output"]
            beyond = await running.shell("timeout 1 bash -c 'exec 3<>/dev/tcp/1.1.1.1/80'")
            assert beyond["exitCode"] == 124, beyond
            read = await running.ask("read_file", path="/proc/self/status", offset=0, limit=4096)
            assert "Seccomp:\t2" in read["content"]

        self.run(tmp_path, story)

    @pytest.mark.req("NOD-458", "NOD-459", "NOD-460")
    def test_what_a_policy_lets_out_goes_by_a_proxy_of_its_own(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            assert running.server.hello is not None
            assert running.server.hello["isolation"]["guard"] == "seccomp", running.log()
            shown = (await running.shell("env"))["output"]
            assert "HTTPS_PROXY=http://127.0.0.1:3128\n" in shown
            assert "NODUS_" not in shown
            for place in ("other.test", "169.254.170.2"):
                fetched = await running.shell(FETCH.format(place))
                assert f"403 nodus egress: {place}:80 is closed" in fetched["output"], fetched
            listed = (await running.shell(FETCH.format("files.test")))["output"]
            assert listed.startswith("502 nodus egress: "), listed  # it is let out, and there is no such host
            direct = await running.shell("timeout 1 bash -c 'exec 3<>/dev/tcp/169.254.170.2/80'")
            assert direct["exitCode"] == 124, direct

        self.run(tmp_path, story, NODUS_EGRESS="AllowList", NODUS_EGRESS_ALLOW="files.test")

    @pytest.mark.req("NOD-457")
    def test_on_a_kernel_without_filters_it_says_that_nothing_guards(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            assert running.server.hello is not None
            assert running.server.hello["isolation"]["guard"] is None
            assert "the kernel takes no filter of system calls" in running.log()

        self.run(tmp_path, story, before=WITHOUT_FILTERS)

    @pytest.mark.req("NOD-157")
    @pytest.mark.parametrize(("holds", "writable"), [(None, True), ("", True), ("file", False)])
    def test_the_working_folder_is_made_where_the_agent_wants_it_and_no_used_one_is_taken(
        self, tmp_path: Path, holds: str | None, writable: bool
    ) -> None:
        wanted = tmp_path / "work/x"
        if holds is not None:
            wanted.mkdir(parents=True)
        if holds:
            (wanted / holds).touch()

        async def story(running: Daemon) -> None:
            result = await running.shell("pwd; touch here && id -u")
            assert result["output"].startswith(f"{wanted}\n")
            assert ("1000" in result["output"]) == writable
            assert (wanted / "here").exists() == writable

        self.run(tmp_path, story, NODUS_WORKSPACE=str(wanted))

    def test_commands_are_the_other_user_without_any_privilege(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            text = (
                await running.shell(
                    "id -u; id -g; id -G; grep CapEff /proc/self/status; touch mine; echo $HOME"
                )
            )["output"]
            uid, gid, groups, capabilities, home = text.splitlines()
            assert (uid, gid, home) == ("1000", "1000", str(running.workspace))
            assert 70_000 <= int(groups.split()[1]) < 131_072
            assert int(capabilities.split()[1], 16) == 0
            pid = running.process.pid
            probe = f"cat /proc/{pid}/environ; ls {tmp_path}/state; kill -9 {pid}; kill -9 -1"
            result = await running.shell(probe)
            assert result["output"].count("ermi") >= 3
            assert alive(pid)
            assert (await running.shell("echo on"))["output"] == "on\n"

        self.run(tmp_path, story)

    def test_file_requests_see_only_what_the_commands_user_may_see(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            pid = running.process.pid
            for path in (f"/proc/{pid}/environ", f"{tmp_path}/state/lock", "/etc/shadow"):
                result = await running.ask("read_file", path=path)
                assert (result["state"], result["reason"]) == ("failed", "denied")
            for kind, more in (("write_file", {"content": "x"}), ("mkdir", {})):
                result = await running.ask(kind, path=f"{tmp_path}/state/evicted2", **more)
                assert (result["state"], result["reason"]) == ("failed", "denied")
            assert (await running.ask("write_file", path="x/y", content="x", createDirs=True))["created"]
            assert (running.workspace / "x/y").stat().st_uid == 1000

        self.run(tmp_path, story)

    @pytest.mark.req("FLD-09")
    def test_the_group_marks_what_hides_all_other_signs(self, tmp_path: Path) -> None:
        async def story(running: Daemon) -> None:
            beside = await running.start("echo begun; sleep 3; echo neighbour")
            hidden = "(env -i /usr/bin/setsid /bin/sh -c '(/bin/sleep 60 &) ; /bin/sleep 61' &) ; sleep 62"
            result = await running.shell(hidden, timeoutS=1)
            assert result["reason"] == "timeout"
            left = [Path(f"/proc/{pid}/cmdline").read_text() for pid in pids_in(running.workspace)]
            assert not [line for line in left if "sleep\x006" in line]
            assert (await running.server.result(beside))["output"] == "begun\nneighbour\n"

        self.run(tmp_path, story)


@as_root
def test_as_pid_1_it_survives_its_commands_reaps_orphans_and_takes_all_along(tmp_path: Path) -> None:
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no pid namespace to be had")

    async def story(running: Daemon) -> None:
        assert (await running.shell("echo $PPID; kill -9 1; kill -9 -1"))["output"].startswith("1\n")
        for name in ("TERM", "INT", "HUP", "USR1", "ALRM"):
            await running.shell(f"kill -{name} 1; trap '' {name}; kill -{name} -1")
        for _ in range(3):
            await running.shell("(setsid sleep 0.05 &) ; exit 0")
        waiting = "while ps -e -o stat,comm 2>/dev/null | grep -q 'sleep'; do sleep 0.02; done; ps -e -o stat"
        listing = (await running.shell(waiting, timeoutS=10))["output"]
        assert "Z" not in listing
        assert (await running.shell("cat /proc/1/environ"))["exitCode"] != 0
        await running.start("setsid nohup sleep 50 >/dev/null & sleep 51")
        await until(lambda: len(pids_in(running.workspace)) >= 2)
        running.process.kill()  # takes pid 1 along
        await until(lambda: not pids_in(running.workspace))

    with_daemon(tmp_path, story, argv=[*unshare, *command_line(sys.executable)])


def test_a_machine_that_waited_becomes_a_sandbox_as_any_other(tmp_path: Path) -> None:
    async def story(running: Daemon) -> None:
        server = running.server
        await server.until(lambda: len(server.questions) >= 2)
        assert server.hello is None
        server.is_somebodys = True
        await server.until(lambda: server.hello and server.bells)
        assert (await running.shell("echo it works"))["output"] == "it works\n"
        assert WARM_CODE not in running.log()
        server.stop = True
        await server.ring()
        assert await running.exit_code() == 0

    with_daemon(tmp_path, story, await_hello=False, **WARM_ENVIRON)


@pytest.mark.parametrize("end", ["signal", "refused"])
def test_a_machine_that_waits_ends_when_it_is_told_to(tmp_path: Path, end: str) -> None:
    async def story(running: Daemon) -> None:
        server = running.server
        await server.until(lambda: server.questions)
        if end == "signal":
            running.process.send_signal(signal.SIGTERM)
        else:
            server.refuse_with = 410
        assert await running.exit_code() == 0
        assert server.hello is None

    with_daemon(tmp_path, story, await_hello=False, **WARM_ENVIRON)
