"""The conversation as the model sees it, rebuilt from the journal once per invocation and then appended to."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nodus_core.inference import cut_text
from nodus_core.inference.exchange import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolResult,
    ToolResults,
    UserMessage,
)
from nodus_core.inference.pricing import Measured
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.kernel import ids
from nodus_core.kernel.decide import CUT, was_restored
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.tasks import Task
from nodus_core.kernel.text import Text

SURPLUS = "Not run: a message may hold at most {most} calls. Call again in your next message if you need to."
"""What the model is told of calls that became no steps."""

REPLACED = (
    "Since your last message the sandbox of this conversation was lost, and a new one has taken its place. Files and "
    "processes of the old one are gone."
)
"""What the model is told before the prompt of a turn that found no sandbox any more."""

RESUMED = (
    "Since your last message the sandbox of this conversation was stopped or lost, and a new one has taken its place. "
    "{restored} All other files of the old one are gone, and so are its processes."
)
"""The same where a saved folder was restored."""


@dataclass
class Transcript:
    """Messages in order. `replies` keeps the assistant messages of the open turn by round key; `limit` is the
    output limit in tokens, for telling the model about a reply that it cut off; `measured` says of each model what
    its latest request held."""

    limit: int
    messages: list[Message] = field(default_factory=list[Message])
    replies: dict[str, AssistantMessage] = field(default_factory=dict[str, AssistantMessage])
    measured: dict[str, Measured] = field(default_factory=dict[str, Measured])

    def measure(self, done: Task) -> None:
        """Keeps what the request of a settled round held, where its provider has counted."""
        if done.model is not None and done.size is not None and done.usage is not None:
            self.measured[done.model] = Measured(done.size, done.usage.input_tokens, done.left_out)

    def add_prompt(self, text: str) -> None:
        self.messages.append(UserMessage(text))

    def add_reply(self, key: str, message: AssistantMessage, *, was_cut: bool) -> None:
        self.messages.append(message)
        self.replies[key] = message
        if was_cut and not message.calls:
            self.messages.append(UserMessage(cut_text(self.limit)))

    def add_results(self, results: Iterable[ToolResult]) -> None:
        self.messages.append(ToolResults(tuple(results)))


def read_transcript(
    journal: Journal, payloads: Payloads, scope: Scope, conversation: Conversation, limit: int
) -> Transcript:
    """The transcript up to what is settled: every opened turn's prompt, its rounds, and the results of their calls.

    Results stand in the order in which their calls were declared, whatever finished first (FLD-05).
    """
    transcript = Transcript(limit)
    for number in range(1, conversation.opened + 1):
        transcript.replies.clear()
        turn = journal.turn(conversation.id, number)
        entry = turn and journal.input(conversation.id, turn.input)
        if turn is None or entry is None:
            raise CorruptRow(f"conversation {conversation.id}: turn {number} or its input is missing")
        tasks = {task.key: task for task in journal.all_tasks(turn.run)}
        texts = _texts(payloads, scope, tasks.values())
        first = tasks.get(ids.SANDBOX)
        if (
            number > 1 and first is not None and first.head is None
        ):  # for one that it lost, its calls were refused
            restored = texts.get((first.key, "result")) if was_restored(first) else None
            transcript.add_prompt(RESUMED.format(restored=restored) if restored else REPLACED)
        transcript.add_prompt(payloads.get(scope, entry.text))
        _add_rounds(transcript, tasks, texts)
    return transcript


def _texts(payloads: Payloads, scope: Scope, tasks: Iterable[Task]) -> dict[tuple[str, str], str]:
    """Message and result texts of tasks, fetched together, by task key and `message` or `result`."""
    wanted: dict[tuple[str, str], Text] = {}
    for task in tasks:
        if task.message is not None:
            wanted[task.key, "message"] = task.message
        elif task.result is not None and task.result.text is not None:
            wanted[task.key, "result"] = task.result.text
    return dict(zip(wanted, payloads.get_many(scope, list(wanted.values())), strict=True))


def _add_rounds(transcript: Transcript, tasks: dict[str, Task], texts: dict[tuple[str, str], str]) -> None:
    number = 1
    while (task := tasks.get(ids.round_key(number))) is not None:
        record = texts.get((task.key, "message"))
        if record is None:
            return
        message = AssistantMessage.from_record(json.loads(record))
        was_cut = task.result is not None and task.result.error == CUT
        transcript.measure(task)
        transcript.add_reply(task.key, message, was_cut=was_cut)
        settled = [item for call in task.calls if (item := tasks.get(call.key)) and item.finished_at]
        if settled and len(settled) == len(task.calls):
            found = [texts.get((item.key, "result"), "") for item in settled]
            transcript.add_results(tool_results(message.calls, settled, found))
        number += 1


def tool_results(
    calls: Sequence[ToolCall], settled: Sequence[Task], texts: Sequence[str]
) -> list[ToolResult]:
    """A result for each call of a message: `settled` are the steps of the first ones, all that became steps."""
    told = [
        ToolResult(call.id, text, is_error=task.result is not None and task.result.is_error)
        for call, task, text in zip(calls, settled, texts, strict=False)
    ]
    surplus = SURPLUS.format(most=len(settled))
    return told + [ToolResult(call.id, surplus, is_error=True) for call in calls[len(settled) :]]
