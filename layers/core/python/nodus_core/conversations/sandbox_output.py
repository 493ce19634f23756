"""What commands of people have put out: asked of the machine in which they run or ran, and kept nowhere else.

So it is live, and it goes with that machine (NOD-433, NOD-434, NOD-440). The daemon bounds it (docs/limits.md).
"""

from dataclasses import dataclass
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.asking import Asking, Question
from nodus_core.conversations.sandbox_commands import SandboxCommands
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import SANDBOX
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import OPEN_COMMANDS, CommandState
from nodus_core.kernel.text import Inline
from nodus_core.sandboxes.answers import PutOut, done, read_as
from nodus_core.sandboxes.outcome import word_of

LONGEST_WAIT_S = 8
"""Seconds for which one call waits for more output."""

MOST_PARTS = 64
"""Answers of which a whole output is made: an honest daemon gives no more."""

_NOT_YET = "not_found"


@dataclass(frozen=True)
class SandboxOutput:
    """Use cases of output. Each raises what `SandboxCommands.of_its_machine` and `Asking.ask` do."""

    commands: SandboxCommands
    asking: Asking

    def part(self, place: Place, name: str, command: str, offset: int, wait_s: int) -> dict[str, Any]:
        """What stands behind an offset, waited for so many seconds where there is nothing yet."""
        row, machine = self.commands.of_its_machine(place, name, command)
        found = self._asked(name, row, machine, offset, wait_s)
        return {
            "command": command,
            "pieces": [{"stream": piece.stream, "text": piece.text} for piece in found.pieces],
            "firstOffset": found.first,
            "nextOffset": found.next,
            "ended": found.ended,
        }

    def whole(self, place: Place, name: str, command: str) -> str:
        """All that is held, up to now or to the command's end: both streams in the order in which they came."""
        row, machine = self.commands.of_its_machine(place, name, command)
        text, offset = "", 0
        for _ in range(MOST_PARTS):
            found = self._asked(name, row, machine, offset, 0)
            text += "".join(piece.text for piece in found.pieces)
            if found.ended or not found.pieces:
                break
            offset = found.next
        return text

    def _asked(self, name: str, row: Command, machine: Sandbox, offset: int, wait_s: int) -> PutOut:
        request = {"command": row.id, "after": offset, "waitS": wait_s}
        answer = self.asking.ask(name, machine, Question("output", request, works=False))
        if answer.get("state") == "failed" and answer.get("reason") == _NOT_YET:
            return _nothing(name, row)
        return read_as(PutOut, done(name, answer))


def _nothing(name: str, row: Command) -> PutOut:
    """Of a command of which its machine has no output: it has not begun, never will, or too many have run since."""
    never_ran = isinstance(row.result, Inline) and word_of(row.result.text)[0] == "Failed"
    if row.state in (CommandState.DONE, CommandState.LOST) and not never_ran:
        message = f"the output of command {row.id} is not kept any more: others have put out too much since"
        raise Refusal("OutputGone", message, kind=SANDBOX, name=name)
    return PutOut(pieces=[], first=0, next=0, ended=row.state not in OPEN_COMMANDS)
