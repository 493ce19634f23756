"""Tries every way out of the egress guard that is known, as a command would.

The daemon hands the source of this module to `python -I -S -c` and starts it as it starts a command; as words it
gets whether commands are given sockets of loopback, with the port of a proxy there or 0, and the folders that no
command may write to.
It answers one line of JSON: the ways that are open, and what a command needs and cannot have. Each attempt is harmless where it succeeds.
"""

import contextlib
import ctypes
import json
import mmap
import os
import platform
import signal
import socket
import stat
import struct
import sys

AF_UNIX = int(socket.AF_UNIX)
FAMILIES = {name: int(value) for name, value in vars(socket).items() if name.startswith("AF_")}
LAST_FAMILY = 63  # Linux 6.18 has 45
KINDS = (1, 2, 3, 4, 5)  # stream, datagram, raw, reliable datagram, packets in sequence

STREAMS, PROXY = json.loads(sys.argv[1])
LOOPBACK = "127.0.0.1"
ANYWHERE = (socket.inet_ntoa(bytes(4)), 0)
SOL_SOCKET, SO_BINDTODEVICE, SO_BINDTOIFINDEX = 1, 25, 62
IPPROTO_IP, IP_OPTIONS, IP_FREEBIND, IP_TRANSPARENT, IP_UNICAST_IF = 0, 4, 15, 19, 50
IPPROTO_SCTP, IPPROTO_MPTCP = 132, 262
IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_GROUP, MCAST_JOIN_SOURCE_GROUP = 39, 42, 46
LOOSE_ROUTE = bytes((131, 7, 4, 127, 0, 0, 1, 0))
GROUP, SOURCE = (socket.inet_aton(address) for address in ("232.0.0.1", "127.0.0.1"))
DEVICE = struct.pack("Q", 1)  # loopback is always the first one, and announces nothing

# Numbers that are the same on every 64-bit processor.
SYS_IO_URING_SETUP = 425
SYS_PIDFD_GETFD = 438
X32 = 0x40000000
X86_64_SOCKET = 41

CLONE_NEWUSER = 0x10000000
PTRACE_SEIZE = 0x4206
PR_GET_NO_NEW_PRIVS = 39

# socket(AF_INET, SOCK_STREAM, 0) by the 32-bit table, of which the 64-bit one knows nothing: push rbx;
# mov eax, 359; mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; pop rbx; ret
INT80_SOCKET = bytes.fromhex("53 b867010000 bb02000000 b901000000 31d2 cd80 5b c3")

libc = ctypes.CDLL(None, use_errno=True)


def open_families():
    """Families other than unix of which some kind of socket can be made."""
    names = {value: name for name, value in sorted(FAMILIES.items(), reverse=True)}  # NETLINK, not ROUTE
    pair = (ctypes.c_int * 2)()
    for family in range(LAST_FAMILY + 1):
        if family == AF_UNIX:
            continue
        given = STREAMS and family == FAMILIES["AF_INET"]
        made = [libc.socket(family, kind, 0) for kind in KINDS if not (given and kind == 1)]
        paired = [libc.socketpair(family, kind, 0, pair) for kind in KINDS]
        if max(made) >= 0 or max(paired) >= 0:
            yield names.get(family, f"family {family}")


def ways_beyond_loopback():
    """What a socket that commands are given reaches beside their own loopback."""
    for protocol in (IPPROTO_SCTP, IPPROTO_MPTCP):
        if libc.socket(FAMILIES["AF_INET"], 1, protocol) >= 0:
            yield f"streams of protocol {protocol}"
    options = (
        (IP_OPTIONS, LOOSE_ROUTE),
        (IP_FREEBIND, 1),
        (IP_TRANSPARENT, 1),
        (IP_UNICAST_IF, struct.pack("!I", 2)),
        # groups, which are announced on a device whatever the socket is bound to
        (IP_ADD_SOURCE_MEMBERSHIP, GROUP + SOURCE + SOURCE),
        (MCAST_JOIN_GROUP, DEVICE + stored(GROUP)),
        (MCAST_JOIN_SOURCE_GROUP, DEVICE + stored(GROUP) + stored(SOURCE)),
    )
    for option, value in options:
        if not fails(lambda stream, option=option, value=value: stream.setsockopt(IPPROTO_IP, option, value)):
            yield f"option {option} of IP"
    for state, stream in states():
        with stream:
            if device_of(stream) != b"lo":
                yield f"sockets that are {state} and not tied to loopback"
                continue
            for way, option, value in untyings():
                with contextlib.suppress(OSError):
                    stream.setsockopt(SOL_SOCKET, option, value)
                if device_of(stream) != b"lo":
                    yield f"sockets that are {state}, and then {way}"
                    break


def states():
    """What a given socket may become, each of its own: connected, accepted, listening, and let go again."""
    yield "new", socket.socket()
    with socket.socket() as listener:
        listener.bind(ANYWHERE)
        listener.listen()
        address = (LOOPBACK, listener.getsockname()[1])
        for again in (False, True):
            near = socket.create_connection(address)
            far = listener.accept()[0]
            for state, stream in (("connected", near), ("accepted", far)):
                if again:
                    disconnect(stream)
                yield state + " and disconnected" * again, stream
        yield "listening", listener.dup()
        disconnect(listener)
        yield "listening no more", listener.dup()


def device_of(stream):
    return stream.getsockopt(SOL_SOCKET, SO_BINDTODEVICE, 16).rstrip(b"\0")


def untyings():
    """Ways to tie a socket to another device, or to nothing."""
    devices = os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net") else []
    for device in ("", *devices):
        if device != "lo":
            yield f"tied to {device or 'nothing'} by name", SO_BINDTODEVICE, device.encode()
    for index in range(len(devices) + 2):
        yield f"tied to device {index} by number", SO_BINDTOIFINDEX, struct.pack("i", index)


def disconnect(stream):
    if libc.connect(stream.fileno(), bytes(16), 16) != 0:  # AF_UNSPEC
        raise OSError(ctypes.get_errno(), "it cannot be disconnected")


def stored(address):
    """An IPv4 address as a `struct sockaddr_storage`."""
    return struct.pack("HH4s120x", FAMILIES["AF_INET"], 0, address)


def fails(attempt):
    with socket.socket() as stream:
        stream.settimeout(1)
        try:
            attempt(stream)
        except OSError:
            return True
    return False


def foreign_tables():
    """Tables of system calls whose numbers the filter does not judge."""
    if platform.machine() != "x86_64":
        return
    if libc.syscall(X32 | X86_64_SOCKET, FAMILIES["AF_INET"], 1, 0) >= 0:
        yield "x32 calls"
    if not int80_is_refused():
        yield "32-bit calls"


def int80_is_refused():
    """Whether a process that makes a 32-bit call dies of it or gets an error."""
    child = os.fork()
    if child == 0:
        try:
            code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            code.write(INT80_SOCKET)
            address = ctypes.addressof(ctypes.c_char.from_buffer(code))
            os._exit(0 if ctypes.CFUNCTYPE(ctypes.c_int)(address)() < 0 else 1)
        finally:
            os._exit(2)  # it could not be tried
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) in (signal.SIGSYS, signal.SIGSEGV)  # SIGSEGV: the kernel has no such calls
    return os.WEXITSTATUS(status) == 0


def ways_to_the_daemon():
    """What would give a command the daemon's sockets, memory or fate, or make the daemon serve it."""
    daemon = os.getppid()
    if libc.ptrace(PTRACE_SEIZE, daemon, 0, 0) == 0:
        yield "tracing the daemon"
    try:
        os.close(os.open(f"/proc/{daemon}/mem", os.O_RDONLY | os.O_CLOEXEC))
        yield "the daemon's memory"
    except OSError:
        pass
    try:
        pidfd = os.pidfd_open(daemon)
        if any(libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0) >= 0 for number in range(64)):
            yield "the daemon's descriptors"
    except OSError:
        pass
    try:
        os.kill(daemon, 0)
        yield "signals to the daemon: commands are its own user"
    except PermissionError:
        pass
    for folder in sys.argv[2:]:
        if os.access(folder, os.W_OK):
            yield f"writing to {folder}"


def ways_to_privileges():
    """What would let a command lift its limits."""
    if libc.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
        yield "new privileges"
    with open("/proc/self/status") as file:
        sets = [line.split() for line in file if line.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb"))]
    if len(sets) != 4 or any(int(held, 16) for _, held in sets):
        yield "capabilities"
    if libc.unshare(CLONE_NEWUSER) == 0:
        yield "user namespaces"


def inherited_sockets():
    """Sockets that were open before the command began."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield f"inherited socket {name}"
        except OSError:  # the listing's own
            pass


def ways_out():
    """All that is open; nothing where the guard holds."""
    yield from inherited_sockets()  # before this process makes any itself
    yield from open_families()
    if STREAMS:
        yield from ways_beyond_loopback()
    yield from foreign_tables()
    if libc.syscall(SYS_IO_URING_SETUP, 1, ctypes.create_string_buffer(512)) >= 0:
        yield "io_uring"
    yield from ways_to_the_daemon()
    yield from ways_to_privileges()


def broken_needs():
    """What a command must have and has not."""
    pair = (ctypes.c_int * 2)()
    if libc.socket(AF_UNIX, 1, 0) < 0 or libc.socketpair(AF_UNIX, 1, 0, pair) != 0:
        yield "unix sockets"
    if STREAMS and not serves():
        yield "a server on loopback"
    if PROXY and fails(lambda stream: stream.connect((LOOPBACK, PROXY))):
        yield "the way to the egress proxy"


def serves():
    """Whether a command can listen on loopback, and another one hear from it."""
    try:
        with socket.socket() as listener, socket.socket() as stream:
            listener.bind((LOOPBACK, 0))
            listener.listen()
            stream.settimeout(1)
            stream.connect(listener.getsockname())
            with listener.accept()[0] as far:
                far.sendall(b"x")
                return stream.recv(1) == b"x"
    except OSError:
        return False


if __name__ == "__main__":
    sys.stdout.write(json.dumps({"open": list(ways_out()), "broken": list(broken_needs())}))
