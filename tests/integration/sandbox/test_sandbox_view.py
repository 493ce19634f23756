"""What a command sees and can change: its own sandbox, and nothing of the machine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sandbox.bench import Driver, Guest, running_with

pytestmark = pytest.mark.req("NOD-042")


@pytest.mark.req("NOD-453")
def test_the_default_image_has_a_shell_and_python(guest: Guest) -> None:
    done = guest.argv("/bin/sh", "-c", "python3 --version && bash -c 'echo $HOME $PWD' && id -un")
    assert done.code == 0, done.err
    version, places, name = done.out.split("\n")[:3]
    assert version.startswith("Python 3.")
    assert places == "/home/agent /workspace"
    assert name == "agent"


def test_python_inside_has_its_libraries(guest: Guest) -> None:
    done = guest.python("import ssl, sqlite3, json, ctypes, subprocess; print(ssl.OPENSSL_VERSION)")
    assert (done.code, done.err) == (0, "")


def test_the_commands_user_can_write_where_it_works(guest: Guest) -> None:
    done = guest.sh(
        'for d in /workspace "$HOME" /tmp /dev/shm; do echo x > $d/mine && cat $d/mine && rm $d/mine; done'
    )
    assert done.out == "x\n" * 4, done.err


@pytest.mark.parametrize(
    "place",
    [
        "/",
        "/usr",
        "/etc",
        "/opt",
        "/opt/sandboxd",
        "/opt/sandboxd/app",
        "/dev",
        "/run",
        "/var",
        "/home",
        "/root",
    ],
)
def test_nothing_else_can_be_written(guest: Guest, place: str) -> None:
    done = guest.sh(f"touch {place}/mine")
    assert done.code != 0
    assert "denied" in done.err or "Read-only" in done.err


@pytest.fixture
def host_secret(driver: Driver) -> Iterator[Path]:
    """A file in a home of the user who runs the agent; outside, that user can read it."""
    home = Path(tempfile.mkdtemp(prefix="nodus-home-"))
    secret = home / ".aws" / "credentials"
    secret.parent.mkdir()
    secret.write_text("host-secret")
    if driver.uid is not None:
        for path in (home, secret.parent, secret):
            os.chown(path, driver.uid, driver.uid)
    yield secret
    secret.unlink()
    secret.parent.rmdir()
    home.rmdir()


def test_the_hosts_homes_are_not_there(guest: Guest, host_secret: Path) -> None:
    assert guest.sh(f"cat {host_secret}").code != 0
    seen = guest.sh(
        "ls -A /home; find /root -type f -readable -not -path '*/.pyenv/versions/*' 2>/dev/null"
    ).out
    assert seen.split() == ["agent"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/ssl/private",
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/sys",
        "/boot",
    ],
)
def test_private_places_of_the_host_are_not_there(guest: Guest, path: str) -> None:
    assert guest.sh(f"ls {path}").code != 0


def test_the_agents_own_files_are_not_there(guest: Guest, driver: Driver) -> None:
    assert guest.sh(f"ls {driver.folder}").code != 0
    assert guest.sh("find / -name sandbox.json -o -name daemon.log 2>/dev/null").out == ""


def test_only_its_own_processes_are_visible(guest: Guest) -> None:
    done = guest.sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "driver.py" not in done.out
    pids = guest.sh("echo /proc/[0-9]*").out.split()
    assert len(pids) < 8, pids
    assert os.getpid() > 100
    assert guest.sh(f"kill -0 {os.getpid()}").code != 0


def test_a_command_is_an_unprivileged_user(guest: Guest) -> None:
    status = guest.sh("cat /proc/self/status").out
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapPrm"], 16) == int(fields["CapInh"], 16) == 0
    assert int(fields["CapAmb"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"
    assert "0" not in fields["Uid"].split()


def test_a_command_runs_as_nobody_of_the_host(guest: Guest, driver: Driver) -> None:
    """In the root modes: a uid that is no person's, so that a file shown by mistake would not be readable."""
    guest.sh("nohup sleep 7777.1 >/dev/null 2>&1 & sleep 0.1")
    (pid,) = running_with("7777.1")
    uid = Path(f"/proc/{pid}").stat().st_uid
    guest.sh("pkill -f [7]777.1")
    assert uid == (driver.uid or os.getuid()) if driver.mode == "user" else uid >= 1_879_048_192


def test_it_cannot_become_root(guest: Guest) -> None:
    done = guest.python("import os\ntry: os.setuid(0)\nexcept OSError: print('refused')")
    assert done.out == "refused\n"
    assert guest.sh("su -c id 2>&1 | grep -c 'uid=0'").out.strip() == "0"


def test_a_command_inherits_no_descriptors(guest: Guest) -> None:
    done = guest.python(
        "import os; print(sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in (0, 1, 2)))"
    )
    assert done.out == "['/dev/null', 'pipe', 'pipe']\n"
    done = guest.python("import os; print([n for n in os.listdir('/proc/self/fd') if int(n) > 3])")
    assert done.out == "[]\n"


@pytest.mark.req("NOD-423")
def test_the_environment_holds_no_credential_and_nothing_of_the_host(guest: Guest) -> None:
    names = {line.partition("=")[0] for line in guest.argv("env").out.splitlines()}
    assert names <= {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "PWD", "LC_CTYPE", "SHLVL", "_"}


def test_two_sandboxes_do_not_see_each_other(driver: Driver, guest: Guest) -> None:
    other = driver.start()
    for place in ("/tmp", "/workspace", "/home/agent", "/dev/shm"):
        assert other.sh(f"echo theirs > {place}/x").code == 0
        assert guest.sh(f"cat {place}/x").code != 0
        assert guest.sh(f"echo mine > {place}/x").code == 0
        assert other.sh(f"cat {place}/x").out == "theirs\n"
    other.sh("nohup sleep 7777.2 >/dev/null 2>&1 & sleep 0.1")
    assert "7777.2" not in guest.sh("cat /proc/[0-9]*/cmdline").out
    guest.sh("pkill -9 -f [7]777.2")
    assert running_with("7777.2")
    driver.ask("close", id=other.sandbox_id)
    assert not running_with("7777.2")


@pytest.mark.req("NOD-044")
def test_what_it_wrote_disappears_with_it(driver: Driver) -> None:
    guest = driver.start()
    guest.sh(
        "mkdir -p /workspace/a/b && echo x > /workspace/a/b/c && chmod 000 /workspace/a && ln -s /etc /workspace/etc"
    )
    guest.sh("mkdir ~/locked && chmod 000 ~/locked")
    assert (guest.folder / "workspace").exists()
    assert driver.ask("close", id=guest.sandbox_id) == {"left": False}
    assert not guest.folder.exists()
    assert Path("/etc/passwd").exists()
