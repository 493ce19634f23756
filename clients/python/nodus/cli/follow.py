"""`nodus agentrun steps --follow`: each step as it starts and ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

import click

from nodus._client import Client
from nodus._kinds import AGENT_RUN
from nodus._pages import LARGEST_PAGE
from nodus._record import Record
from nodus._runs import FOR_A_PERSON, at_rest
from nodus._waiting import poll
from nodus.cli import formats, picking, step_table, text, waits
from nodus.cli.failures import Failure
from nodus.errors import ApiError

if TYPE_CHECKING:
    from rich.live import Live

LONGEST_INTERVAL_SECONDS = 1.0
GONE_POSITION = {400, 410}
RUNNING = "Running"
UNSETTLED = {RUNNING, "Uncertain"}
MARKS = {"Completed": "✓", "Failed": "✗", "Uncertain": "?", "Cancelled": "-"}


class StepReader:
    """Reads a run's steps again and again without reading finished pages twice."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._position: str | None = None
        # By what a step is called and when it began: its index changes when one that began later ends before it.
        self._known: dict[tuple[str, str], dict[str, Any]] = {}

    def changes(self) -> list[dict[str, Any]]:
        """The steps that are new or in another state than at the last reading, in order."""
        try:
            found = list(self._read())
        except ApiError as error:
            if self._position is None or error.code not in GONE_POSITION:
                raise
            self._position = None  # the position was given up by the server: from the beginning
            found = list(self._read())
        changed: list[dict[str, Any]] = []
        for step in found:
            identity = (str(step.get("name")), str(step.get("startedAt")))
            before = self._known.get(identity)
            if before is None or any(before.get(key) != step.get(key) for key in ("state", "attempt")):
                changed.append(step)
            self._known[identity] = step
        return changed

    def running(self) -> list[dict[str, Any]]:
        """The steps at work."""
        running = [step for step in self._known.values() if step.get("state") == RUNNING]
        return sorted(running, key=lambda step: int(step.get("index") or 0))

    def _read(self) -> Iterator[dict[str, Any]]:
        settled = True
        pages = self._client.agentruns.pages(
            name=self._name, below="steps", limit=LARGEST_PAGE, position=self._position
        )
        for page in pages:
            items = [step.to_dict() for step in page["items"]]
            yield from items
            settled = settled and all(step.get("state") not in UNSETTLED for step in items)
            following = (page.get("metadata") or Record({})).get("continue")
            if settled and following:
                self._position = following


class Screen(Protocol):
    """Where the changes are shown."""

    def show(self, run: dict[str, Any], changed: list[dict[str, Any]], running: list[dict[str, Any]]) -> None:
        """Show one reading."""
        ...

    def say(self, line: str) -> None:
        """Tell something about the run that is none of its data."""
        ...

    def end(self, run: dict[str, Any]) -> None:
        """Show how the run ended."""
        ...


class Telling:
    """Tells on stderr."""

    def say(self, line: str) -> None:
        """Beside the data."""
        waits.to_stderr(line)


class Lines(Telling):
    """Plain lines, for pipes and files."""

    def __init__(self) -> None:
        self._told: tuple[Any, Any] | None = None

    def show(self, run: dict[str, Any], changed: list[dict[str, Any]], running: list[dict[str, Any]]) -> None:
        """A line per change, of the run's phase and reason too."""
        for step in changed:
            click.echo(plain(step))
        if run_rests(run):
            return  # `end` says it
        now = picking.pick(run, "status.phase"), picking.pick(run, "status.reason")
        if self._told not in {None, now}:
            click.echo(f"run        {end_of(run)}")
        self._told = now

    def end(self, run: dict[str, Any]) -> None:
        """The run's end."""
        click.echo(f"run        {end_of(run)}")


class JsonLines(Telling):
    """A JSON object per change."""

    def show(self, run: dict[str, Any], changed: list[dict[str, Any]], running: list[dict[str, Any]]) -> None:
        """A line per change."""
        for step in changed:
            click.echo(formats.to_json_line(step))

    def end(self, run: dict[str, Any]) -> None:
        """Nothing: the lines are steps only."""


class Region:
    """A live region on a terminal: finished steps above, steps at work with a spinner below."""

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, run: dict[str, Any], changed: list[dict[str, Any]], running: list[dict[str, Any]]) -> None:
        """Print what ended, and renew what is at work."""
        from rich.console import Group  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        for step in changed:
            if step.get("state") != RUNNING:
                self._live.console.print(
                    _finished_line(step), soft_wrap=False, overflow="ellipsis", no_wrap=True
                )
        rows = [
            Spinner("dots", Text(f"{text.line(step.get('name'))}  {step_table.time_of(step)}", no_wrap=True))
            for step in running
        ]
        self._live.update(Group(*rows, Text(end_of(run), style="dim", no_wrap=True, overflow="ellipsis")))

    def say(self, line: str) -> None:
        """Above the region, which a line of another stream would tear."""
        from rich.text import Text  # noqa: PLC0415

        self._live.console.print(Text(line, style="yellow"))

    def end(self, run: dict[str, Any]) -> None:
        """Leave one line."""
        from rich.text import Text  # noqa: PLC0415

        self._live.update(Text(end_of(run), style="bold"))


def follow_steps(client: Client, name: str, *, as_json: bool) -> None:
    """Show steps as `follow` does: one JSON object per change, or text, on a terminal with a live region."""
    with _screen(as_json) as screen:
        follow(client, name, screen)


def follow(client: Client, name: str, screen: Screen) -> None:
    """Show steps until the run has finished, or goes on only when somebody acts.

    Args:
        client: where the run is.
        name: the run.
        screen: where they are shown.

    Raises:
        Failure: the run waits for a person (`NeedsResolution`, `MaxCostReached`, …).
    """
    reader, teller = StepReader(client, name), waits.Teller(screen.say)

    def read(within: float) -> dict[str, Any]:
        # The run first: when it has finished, the steps that are read after it are all there will be.
        run = client.agentruns.get(name, within=within).to_dict()
        screen.show(run, reader.changes(), reader.running())
        teller.tell(run)
        return run

    run = poll(read, run_rests, timeout=None, describe=lambda _: "", longest=LONGEST_INTERVAL_SECONDS)
    screen.end(run)
    reason = str(picking.pick(run, "status.reason"))
    if picking.pick(run, "status.phase") not in AGENT_RUN.finished and reason in FOR_A_PERSON:
        raise Failure(f"agentrun/{name} goes on only when somebody acts", reason=reason)


def run_rests(run: dict[str, Any]) -> bool:
    """Whether no more steps come unless somebody acts."""
    return at_rest(Record(run.get("status") or {}))


def _screen(as_json: bool) -> AbstractContextManager[Screen]:
    if as_json:
        return nullcontext(JsonLines())
    if not sys.stdout.isatty():
        return nullcontext(Lines())
    return _LiveScreen()


class _LiveScreen(AbstractContextManager[Screen]):
    def __init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415 (0.1 s that only a terminal pays)

        self._live = Live(refresh_per_second=10)

    def __enter__(self) -> Screen:
        self._live.start()
        return Region(self._live)

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def plain(step: dict[str, Any], *, detail: bool = True) -> str:
    """A step in one line; ``detail``: with the beginning of its output."""
    name = text.line(step.get("name"))
    if step.get("state") == RUNNING:
        return f"started    {name}"
    return "  ".join(
        part for part in (f"{text.line(step.get('state')).lower():<10} {name}", *_facts(step, detail)) if part
    )


def _facts(step: dict[str, Any], detail: bool = True) -> list[str]:
    cost, tokens = step.get("costUSD"), step_table.tokens(step)
    return [
        step_table.time_of(step),
        f"${text.line(cost)}" if cost else "",
        f"{text.line(tokens)} tokens" if tokens else "",
        text.cut(step_table.detail(step), picking.PREVIEW_COLUMNS)
        if detail
        else text.line(step_table.how(step)),
    ]


def _finished_line(step: dict[str, Any]) -> Any:
    from rich.text import Text  # noqa: PLC0415

    state = str(step.get("state"))
    good = state == "Completed"
    made = Text(f"{MARKS.get(state, '·')} ", style="green" if good else "red")
    made.append(text.line(step.get("name")), style="" if good else "red")
    if not good:
        made.append(f"  {text.line(state)}", style="red")
    made.append("  " + "  ".join(fact for fact in _facts(step) if fact), style="dim")
    return made


def end_of(run: dict[str, Any]) -> str:
    """How a run is, in one line."""
    status: dict[str, Any] = run.get("status") or {}
    reason, message, cost = (status.get(key) for key in ("reason", "message", "cost"))
    parts = [
        f"agentrun/{picking.pick(run, 'metadata.name')} {status.get('phase') or 'Queued'}",
        f"({reason})" if reason else "",
        f"${picking.pick(cost, 'totalUSD')}" if picking.pick(cost, "totalUSD") else "",
        f"compute ${picking.pick(cost, 'computeUSD')}" if picking.pick(cost, "computeUSD") else "",
        str(message) if message else "",
    ]
    return text.line("  ".join(part for part in parts if part))
