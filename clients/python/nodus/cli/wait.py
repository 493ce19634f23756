"""`nodus wait`: until a field has a value."""

from __future__ import annotations

from dataclasses import dataclass

import click

from nodus._jsonpath import Path, parse_path, shown
from nodus._record import Record
from nodus._waiting import poll
from nodus.cli import columns, durations
from nodus.cli.failures import OTHER_END, Failure, usage
from nodus.cli.kinds import AGENT_RUN, Target, target_argument
from nodus.cli.session import Command, Session, pass_session
from nodus.cli.waits import Teller
from nodus.errors import WaitTimeoutError

HOW = "--for=jsonpath='{.status.phase}'=Succeeded"


@dataclass(frozen=True)
class Condition:
    """A path and the value that it shall have."""

    path: Path
    value: str

    def met(self, thing: Record) -> bool:
        """Whether the object has the value."""
        return any(shown(value) == self.value for value in self.path.values(thing.to_dict()))

    def missed(self, target: Target, thing: Record) -> bool:
        """Whether the object has ended in another phase than the one that is waited for."""
        return self.path.steps == ("status", "phase") and _phase(thing) in target.kind.finished


class ConditionType(click.ParamType[Condition]):
    """The option ``--for``."""

    name = "CONDITION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Condition:
        """Read the option."""
        if isinstance(value, Condition):
            return value
        form, _, rest = str(value).partition("=")
        if form != "jsonpath" or not rest:
            raise usage(f"--for={value!s}: the condition is written {HOW}", "InvalidCondition")
        if rest.startswith("{"):
            path, _, wanted = rest.partition("}")
            path += "}"
            if not wanted.startswith("="):
                raise usage(f"--for={value!s}: which value? It is written {HOW}", "InvalidCondition")
            return Condition(parse_path(path), wanted[1:])
        path, sign, wanted = rest.partition("=")
        if not sign:
            raise usage(f"--for={value!s}: which value? It is written {HOW}", "InvalidCondition")
        return Condition(parse_path(path), wanted)


@click.command(cls=Command)
@target_argument
@click.option("--for", "condition", type=ConditionType(), required=True, help=f"What to wait for: {HOW[6:]}")
@click.option(
    "--timeout", type=durations.DURATION, default="30s", help="How long, such as 8m (default: 30s)."
)
@pass_session
def wait(session: Session, target: Target, condition: Condition, timeout: float) -> None:
    """Wait until a field of an object has a value.

    Exit code 0: it has the value. 1: not within the time, or an error. 2, at once: the object has ended in
    another phase, so the wait can never be met. A run that itself waits (for a person, a message, money or its
    provider) is waited for all the same; for what and what to do is said on stderr.

    \b
      nodus wait agentrun/triage --for=jsonpath='{.status.phase}'=Succeeded --timeout=8m
    """
    resource = session.resource(target.kind)
    teller = Teller()

    def over(seen: Record) -> bool:
        if condition.met(seen) or condition.missed(target, seen):
            return True
        if target.kind is AGENT_RUN:
            teller.tell(seen.to_dict())
        return False

    def late(thing: Record | None) -> str:
        seen = "was not read" if thing is None else f"is {_phase(thing)}{_reason(thing)}"
        return f"{target} {seen} after {durations.shown(timeout)}, and {condition.path.text} is not {condition.value}"

    try:
        thing = poll(
            lambda within: resource.get(target.name, within=within), over, timeout=timeout, describe=late
        )
    except WaitTimeoutError as error:
        raise Failure(error.message, reason="Timeout") from error
    if not condition.met(thing):
        status = columns.pick(thing.to_dict(), "status")
        reason = columns.pick(status, "reason") or _phase(thing)
        message = columns.pick(status, "message")
        why = f"{target} is {_phase(thing)} and will not become {condition.value}"
        raise Failure(f"{why}: {message}" if message else why, reason=str(reason), exit_code=OTHER_END)
    click.echo(f"{target} condition met")


def _reason(thing: Record) -> str:
    reason = columns.pick(thing.to_dict(), "status.reason")
    return f" ({reason})" if reason else ""


def _phase(thing: Record) -> str:
    return str(columns.pick(thing.to_dict(), "status.phase") or "without a phase")
