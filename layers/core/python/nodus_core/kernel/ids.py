"""Ids that are a function of position: the same place in the graph always has the same id.

Fresh ids (uids, claimants, write tokens) come from the caller; nothing here is random.
"""

import hashlib
import re

MAIN = "main"
"""The branch of a conversation's own reply; later branches are named by the call that made them."""

SANDBOX = "sandbox"
SOURCE = "source"
SETUP = "setup"
ROUTE = "route"
RUN_COMMAND = "run_command"

_PREPARATION = re.compile(rf"^({SANDBOX}|{SOURCE}|{SETUP})\d*$")
_CALL = re.compile(r"^r(\d+)t(\d+)$")
_ROUND = re.compile(r"^r(\d+)$")
_RUNS_SANDBOX = re.compile(r"run-[0-9a-f]{32}-s[0-9]+")
_SANDBOX_ID = re.compile(r"(.+)-s([1-9][0-9]{0,8})")
_WARM = re.compile(r"warm-[0-9a-f]+")
_ASK = re.compile(r"ask-([0-9]{2})-[0-9a-f]{32}")


def digest(text: str) -> str:
    """sha256 of the UTF-8 of `text`, in hex; also of a text with lone surrogates, which no UTF-8 holds."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def run_id(conversation: str, turn: int) -> str:
    """Uid of the run that answers a turn: a replayed `open_turn` names the same run."""
    return f"{conversation}-{turn}"


def sandbox_id(conversation: str, ordinal: int) -> str:
    """Uid of the n-th sandbox of a conversation (1 for the first)."""
    return f"{conversation}-s{ordinal}"


def owner_of_sandbox(sandbox: str) -> tuple[str, int] | None:
    """The conversation of a sandbox and its number there; None for what is no such id."""
    match = _SANDBOX_ID.fullmatch(sandbox)
    return (match.group(1), int(match.group(2))) if match else None


def is_warm_machine(name: str) -> bool:
    """Whether it is the id of a machine that was started before anybody needed it."""
    return _WARM.fullmatch(name) is not None


def is_runs_sandbox(name: str) -> bool:
    """Whether only a run's sandbox may have this name."""
    return _RUNS_SANDBOX.fullmatch(name) is not None


def sandbox_key(number: int) -> str:
    """Task key of the n-th sandbox step of a run: from 2 on, a sandbox in the place of one that was lost."""
    return SANDBOX if number <= 1 else f"{SANDBOX}{number}"


def setup_key(number: int) -> str:
    """Task key of the setup in the sandbox of the run's n-th sandbox step."""
    return SETUP if number <= 1 else f"{SETUP}{number}"


def source_key(number: int) -> str:
    """Task key of the copy of the source into the sandbox of the run's n-th sandbox step."""
    return SOURCE if number <= 1 else f"{SOURCE}{number}"


def preparation(key: str) -> str | None:
    """`SANDBOX`, `SOURCE` or `SETUP` for the key of such a step; None for other tasks."""
    match = _PREPARATION.match(key)
    return match.group(1) if match else None


def round_key(number: int) -> str:
    """Task key of the n-th model round of a run, from 1."""
    return f"r{number}"


def call_key(round_number: int, index: int) -> str:
    """Task key of the call with this index (from 0) in a round's message."""
    return f"r{round_number}t{index}"


def command_id(run: str, task: str, attempt: int = 1) -> str:
    """Id under which the sandbox daemon knows a task's command; the same attempt of a task, the same command."""
    return f"{run}.{task}" if attempt == 1 else f"{run}.{task}.{attempt}"


PERSONS = "u-"
"""How ids of commands begin that somebody has asked for."""


def persons_command(micros: int, digest_: str) -> str:
    """Id of a command that somebody has asked for: by time, so that a history is read in its order."""
    return f"{PERSONS}{micros:017d}-{digest_[:12]}"


TERMINALS = "t-"
"""How ids of terminals begin, which stand beside commands."""


def terminal_id(micros: int, digest_: str) -> str:
    """Id of a terminal that somebody has opened."""
    return f"{TERMINALS}{micros:017d}-{digest_[:12]}"


def is_terminal(command: str) -> bool:
    return command.startswith(TERMINALS)


def is_persons_command(command: str) -> bool:
    return command.startswith(PERSONS)


ASK = "ask-"
"""How ids of asks begin; no command's does."""


def ask_id(place: int, digest_: str) -> str:
    """Id of an ask: it tells in which of its sandbox's places it stands."""
    return f"{ASK}{place:02d}-{digest_[:32]}"


def ask_place(ask: str) -> int | None:
    """The place of an ask; None for what is no ask's id."""
    match = _ASK.fullmatch(ask)
    return int(match.group(1)) if match else None


def execution_name(line: str, generation: int) -> str:
    """Name of the execution that works on a line in one generation (at most 80 characters)."""
    return f"{line}-{generation}"


def round_of(key: str) -> int | None:
    """Number of the round that a round's or call's key belongs to; None for other tasks."""
    match = _ROUND.match(key) or _CALL.match(key)
    return int(match.group(1)) if match else None


def step_name(turn: int, key: str, tool: str | None, number: int) -> str:
    """Name under which a person sees a task (NODQ-86).

    `number` counts the model rounds, or the tool calls, of the turn; of a sandbox, its source and its setup, the sandboxes
    of the conversation.
    """
    prepares = preparation(key)
    if prepares is not None:
        return prepares if number == 1 else f"{prepares}.{number}"
    if key == ROUTE:
        return f"turn-{turn}.route"
    if _ROUND.match(key):
        return f"turn-{turn}.model.{number}"
    return f"turn-{turn}.tool.{tool}.{number}"
