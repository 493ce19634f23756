"""Ways around the namespaces: the network, the kernel's interfaces, namespaces made again."""

from __future__ import annotations

import platform
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.integration.sandbox.bench import Driver, Guest

pytestmark = pytest.mark.req("NOD-042")

LIBC = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A service of the host on 127.0.0.1, as the local cloud is one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.req("NOD-457")
def test_services_of_the_host_cannot_be_reached(guest: Guest, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        done = guest.python(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)")
    assert "refused" in done.err


@pytest.mark.req("NOD-457")
@pytest.mark.parametrize(
    "address", ["1.1.1.1", "10.0.0.1", "169.254.169.254", "169.254.170.2", "192.168.0.1"]
)
def test_no_address_outside_can_be_reached(guest: Guest, address: str) -> None:
    done = guest.python(f"import socket; socket.create_connection(('{address}', 80), 5)")
    assert "unreachable" in done.err
    done = guest.python(
        f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('{address}', 53))"
    )
    assert "unreachable" in done.err


@pytest.mark.req("NOD-457")
def test_names_are_not_resolved(guest: Guest) -> None:
    assert guest.python("import socket; socket.getaddrinfo('github.com', 443)").code != 0


def test_there_is_no_interface_but_loopback(guest: Guest) -> None:
    lines = guest.sh("cat /proc/net/dev").out.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


def test_loopback_inside_works(guest: Guest) -> None:
    code = (
        "import socket, threading\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "threading.Thread(target=lambda: server.accept()[0].sendall(b'inside')).start()\n"
        "print(socket.create_connection(server.getsockname()).recv(10).decode())"
    )
    assert guest.python(code).out == "inside\n"


def test_abstract_sockets_of_the_host_cannot_be_reached(guest: Guest) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0nodus-test-abstract")
        server.listen()
        done = guest.python("import socket; socket.socket(socket.AF_UNIX).connect('\\0nodus-test-abstract')")
    assert "refused" in done.err


@pytest.mark.parametrize(
    ("family", "kind", "protocol"),
    [(40, 1, 0), (17, 3, 0), (38, 5, 0), (16, 3, 9), (16, 3, 16), (31, 3, 0), (44, 3, 0)],
    ids=["vsock", "packet", "alg", "netlink-audit", "netlink-generic", "bluetooth", "xdp"],
)
def test_sockets_that_no_network_namespace_holds_are_refused(
    guest: Guest, family: int, kind: int, protocol: int
) -> None:
    done = guest.python(f"import socket; socket.socket({family}, {kind}, {protocol})")
    assert "Address family not supported" in done.err


@pytest.mark.parametrize("flags", [0x10000000, 0x10020000, 0x20000, 0x40000000, 0x20000000])
def test_no_namespace_can_be_made_again(guest: Guest, flags: int) -> None:
    done = guest.python(LIBC + f"print(libc.unshare({flags}), ctypes.get_errno())")
    assert done.out == "-1 1\n"


def test_no_namespace_can_be_made_by_clone(guest: Guest) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("numbers of x86_64")
    assert (
        guest.python(LIBC + "print(libc.syscall(56, 0x10000011, 0, 0, 0, 0), ctypes.get_errno())").out
        == "-1 1\n"
    )
    assert guest.python(LIBC + "print(libc.syscall(435, 0, 0), ctypes.get_errno())").out == "-1 38\n"


def test_threads_and_processes_still_work(guest: Guest) -> None:
    code = (
        "import subprocess, threading\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "subprocess.run(['echo', 'child'])"
    )
    done = guest.python(code)
    assert sorted(done.out.split()) == ["child", "thread"], done.err


@pytest.mark.parametrize(
    "call",
    [
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.umount2(b'/workspace', 2)",
        "libc.chroot(b'/tmp')",
        "libc.setns(os.open('/proc/self/ns/net', 0), 0)",
        "libc.setns(os.open('/proc/self/ns/user', 0), 0x40000000)",
        "libc.sethostname(b'x', 1)",
        "libc.swapon(b'/tmp/x', 0)",
        "libc.reboot(0x1234567)",
        "libc.process_vm_readv(1, None, 0, None, 0, 0)",
    ],
)
def test_interfaces_of_the_kernel_are_refused(guest: Guest, call: str) -> None:
    done = guest.python(LIBC + f"print({call}, ctypes.get_errno())")
    assert done.out == "-1 1\n", done.err


def test_a_user_namespace_cannot_be_entered_twice(guest: Guest) -> None:
    done = guest.python(
        LIBC + "print(libc.setns(os.open('/proc/self/ns/user', 0), 0x10000000), ctypes.get_errno())"
    )
    assert done.out in ("-1 1\n", "-1 22\n"), done.err


def test_proc_cannot_change_the_kernel(guest: Guest) -> None:
    for path in (
        "sys/kernel/core_pattern",
        "sysrq-trigger",
        "sys/vm/drop_caches",
        "sys/user/max_user_namespaces",
    ):
        assert guest.sh(f"echo 1 > /proc/{path}").code != 0


class Echo:
    """What stands for the link: answers every connection once."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _serve(self) -> None:
        connection, _ = self.server.accept()
        with connection:
            connection.sendall(b"link says " + connection.recv(100))

    def close(self) -> None:
        self.thread.join()
        self.server.close()


def test_only_the_link_is_dialled(driver: Driver, listener: socket.socket) -> None:
    link = Echo()
    guest = driver.start(allowed=[("127.0.0.1", link.port)])
    other = f"127.0.0.1:{listener.getsockname()[1]}"
    refused = "is not the link's address"
    assert refused in guest.ask({"dial": other})["answer"]
    assert refused in guest.ask({"dial": f"localhost:{link.port}"})["answer"]
    for nonsense in ("", "x", "127.0.0.1:", f"127.0.0.1:{link.port}x", ":80", "127.0.0.1:99999"):
        if nonsense:
            assert guest.ask({"dial": nonsense})["answer"] == "error: expected HOST:PORT"
    assert guest.ask({"dial": f"127.0.0.1:{link.port}"}) == {"answer": "ok", "received": "link says hello"}
    link.close()
    assert "cannot connect" in guest.ask({"dial": f"127.0.0.1:{link.port}"})["answer"]
    driver.ask("close", id=guest.sandbox_id)
