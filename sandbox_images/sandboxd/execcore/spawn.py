"""Starts one process of its own session, as the commands' user."""

import contextlib
import errno
import fcntl
import os
import resource
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from sandboxd.execcore.spec import MARK_NAME, CommandUser, ExecSpec, SpawnError

_COMMAND_UMASK = 0o022
_OOM_SCORE_ADJ = 500
"""Added to a command's badness, so that the kernel ends it before the daemon."""

SPARED = 64
"""Processes of the limit for a user (`RLIMIT_NPROC`) that commands leave to others that are started for them."""


@dataclass(frozen=True)
class Spawned:
    """A running leader and the reading ends of its output: one for both, or one for each."""

    pid: int
    output_fds: tuple[int, ...]


def spawn(spec: ExecSpec, mark: str, user: CommandUser, group_mark: int | None) -> Spawned:
    """Starts the command: own session, clean environment, no foreign descriptors, one pipe for both outputs.

    One pipe, because with two the order between them is lost; two where a log is to tell them apart.

    Raises:
        SpawnError: nothing was started.
    """
    pipes = _pipes(1 if spec.log is None else 2)
    made = None
    try:
        made = _memory_file(spec.stdin) if isinstance(spec.stdin, bytes) else None
        if spec.tty is not None:  # then the pipes end at once, and have brought nothing
            pid = _popen(spec, mark, user, group_mark, stdin=spec.tty, outputs=[spec.tty])
        else:
            given = subprocess.DEVNULL if spec.stdin is None or isinstance(spec.stdin, bytes) else spec.stdin
            stdin = given if made is None else made
            pid = _popen(spec, mark, user, group_mark, stdin=stdin, outputs=[writing for _, writing in pipes])
    except BaseException:
        for reading, _ in pipes:
            os.close(reading)
        raise
    finally:
        for _, writing in pipes:
            os.close(writing)
        if made is not None:
            os.close(made)
    _offer_to_oom_killer(pid)
    return Spawned(pid, tuple(reading for reading, _ in pipes))


def _pipes(count: int) -> list[tuple[int, int]]:
    made: list[tuple[int, int]] = []
    try:
        for _ in range(count):
            made.append(os.pipe2(os.O_CLOEXEC))
            os.set_blocking(made[-1][0], False)
    except OSError:
        for pipe in made:
            os.close(pipe[0])
            os.close(pipe[1])
        raise
    return made


def _popen(
    spec: ExecSpec, mark: str, user: CommandUser, group_mark: int | None, *, stdin: int, outputs: list[int]
) -> int:
    try:
        with _sparing() if spec.spares else contextlib.nullcontext():
            process = subprocess.Popen(  # noqa: S603 - running what the agent asks for is what the daemon is for
                spec.argv,
                cwd=spec.cwd,
                env={**spec.env, MARK_NAME: mark},
                stdin=stdin,
                stdout=outputs[0],
                stderr=outputs[-1],
                start_new_session=True,
                umask=_COMMAND_UMASK,
                close_fds=True,
                pass_fds=spec.fds,
                user=user.uid,
                group=user.gid,
                extra_groups=None if user.uid is None else [] if group_mark is None else [group_mark],
            )
    except OSError as error:
        raise _spawn_error(error, spec) from error
    except (ValueError, UnicodeError) as error:  # NUL or a lone surrogate in an argument
        raise SpawnError("invalid", f"The command cannot be handed to the system: {error}.") from error
    pid = process.pid
    # The reaper waits for this child. Without a return code, Popen would wait for it too when it is collected.
    process.returncode = 0
    return pid


@contextlib.contextmanager
def _sparing() -> Iterator[None]:
    """What is started meanwhile may fill its user's processes up to the last few.

    A command that has filled them all would keep its folder from being saved, and a person from its files. It may
    lift the lower limit again; then it has harmed nobody but itself.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY or soft <= 2 * SPARED:
        yield
        return
    resource.setrlimit(resource.RLIMIT_NPROC, (soft - SPARED, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))


def _spawn_error(error: OSError, spec: ExecSpec) -> SpawnError:
    if error.errno == errno.E2BIG:
        return SpawnError(
            "invalid",
            "The command and its environment are too long for the system (about 128 KiB for one text). "
            "Write it to a file and run that.",
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return SpawnError(
            "no_memory", f"No process or memory is left to start the command ({error.strerror})."
        )
    if error.filename is not None and os.fsdecode(error.filename) == spec.cwd:
        return SpawnError("cwd", f"The command cannot start in {spec.cwd!r}: {error.strerror}.")
    return SpawnError("spawn", f"{spec.argv[0]!r} cannot be started: {error.strerror}.")


def _memory_file(data: bytes) -> int:
    """A sealed descriptor with `data` to read: no pipe that somebody would have to feed."""
    fd = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.lseek(fd, 0, os.SEEK_SET)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _offer_to_oom_killer(pid: int) -> None:
    # The child may be gone already, or /proc may be read-only: then nothing is lost but a preference.
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write(str(_OOM_SCORE_ADJ))
