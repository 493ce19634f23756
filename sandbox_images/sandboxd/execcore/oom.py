"""Tells whether the kernel ended a process for want of memory."""

import signal

_EXIT_AFTER_KILL = 128 + signal.SIGKILL


def count_oom_kills() -> int | None:
    """How many processes this kernel has ended for want of memory; None where it does not say."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for line in file:
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    except OSError:
        return None
    return None


def was_out_of_memory(
    exit_code: int | None, signum: int | None, before: int | None, after: int | None
) -> bool:
    """Judges a death by signal 9 that the daemon did not cause.

    A shell whose child was killed ends itself with 137: that counts too, but only when the kernel's count has
    grown. Where the kernel keeps no count, only the leader's own death by signal 9 counts.
    """
    if before is None or after is None:
        return signum == signal.SIGKILL
    return after > before and (signum == signal.SIGKILL or exit_code == _EXIT_AFTER_KILL)
