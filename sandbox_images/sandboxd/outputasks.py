"""Asks about the output of commands, while they run and as long as their machine lives (NOD-433, NOD-434, NOD-440)."""

from collections.abc import Mapping

from sandboxd.asks import Handler
from sandboxd.execcore.outputlog import OutputShelf
from sandboxd.journal import key_of
from sandboxd.requests import Fields
from sandboxd.results import Result, answer_result, failed_result

MOST_WAIT_S = 10.0
STREAMS = {1: "stdout", 2: "stderr"}


class OutputAsks:
    """What people ask about the output of commands."""

    def __init__(self, outputs: OutputShelf) -> None:
        self._outputs = outputs

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Who does which kind."""
        return {"output": self._output}

    async def _output(self, fields: Fields) -> Result:
        name, after = fields.text("command"), fields.whole("after", 0)
        wait_s = fields.seconds("waitS", 0.0, 0.0, MOST_WAIT_S)
        log = self._outputs.find(key_of(name))
        if log is None:
            return failed_result("not_found", f"There is no output of command {name!r} here (any more).")
        await log.grown(after, wait_s)
        reading = log.read(after)
        return answer_result(
            {
                "pieces": [{"stream": STREAMS[piece.stream], "text": piece.text} for piece in reading.pieces],
                "first": reading.first,
                "next": reading.next,
                "ended": reading.ended,
            }
        )
