"""`nodus wait`: until objects are as wanted."""

from __future__ import annotations

import time

import click

from nodus._conditions import Condition, parse_condition
from nodus._kinds import AGENT_RUN, SANDBOX
from nodus._record import Record
from nodus._waiting import poll
from nodus.cli import change, changing, durations, picking, text
from nodus.cli.failures import OTHERWISE, Failure, usage
from nodus.cli.selection import Choice, Subject, choice_options
from nodus.cli.session import Command, Session, pass_session
from nodus.cli.waits import Teller
from nodus.errors import NodusError, WaitTimeoutError

FORMS = "jsonpath='{.status.phase}'=Succeeded, phase=Succeeded, condition=Ready or delete"
DELETE = "delete"


class ConditionType(click.ParamType[Condition | str]):
    """The option ``--for``."""

    name = "CONDITION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Condition | str:
        """Read the option."""
        if isinstance(value, Condition):
            return value
        if value == DELETE:
            return DELETE
        try:
            return parse_condition(str(value))
        except NodusError as error:
            raise usage(f"--for={value!s}: {error.message}; write {FORMS}", error.reason) from error


@click.command(cls=Command)
@choice_options
@click.option("--for", "wanted", type=ConditionType(), required=True, help=f"What to wait for: {FORMS}.")
@click.option(
    "--timeout", type=durations.DURATION, default="30s", help="How long for all, such as 8m (default: 30s)."
)
@pass_session
def wait(session: Session, choice: Choice, wanted: Condition | str, timeout: float) -> int:
    """Wait until objects are as wanted, or gone.

    Exit code 0: so it is. 1: not within the time, or an error. 2, at once: the object has ended in another phase,
    so the wait can never be met. A run that itself waits (for a person, a message, money or its provider) and a
    sandbox that stands still are waited for all the same; why and what to do is said on stderr.

    \b
      nodus wait agentrun/triage --for=jsonpath='{.status.phase}'=Succeeded --timeout=8m
      nodus wait sandbox/dev --for=jsonpath='{.status.phase}'=Running
      nodus wait ar/a ar/b --for=delete
    """
    until = time.monotonic() + timeout

    def one(subject: Subject) -> None:
        left = max(0.0, until - time.monotonic())
        try:
            if isinstance(wanted, Condition):
                _wait(session, subject, wanted, left, durations.shown(timeout))
            else:
                change.wait_until_gone(session, subject, None, left)
        except WaitTimeoutError as error:
            raise Failure(error.message, reason="Timeout") from error
        click.echo(f"{text.line(subject)} condition met")

    return changing.each(choice.find(session), one)


def _wait(session: Session, subject: Subject, wanted: Condition, left: float, asked: str) -> None:
    kind, name = subject.target
    resource = session.resource(kind, subject.project)
    teller = Teller()

    def over(seen: Record) -> bool:
        if wanted.met(seen) or wanted.missed(kind, seen):
            return True
        if kind in (AGENT_RUN, SANDBOX):
            teller.tell(seen.to_dict())
        return False

    def late(thing: Record | None) -> str:
        seen = "was not read" if thing is None else f"is {_phase(thing)}{_reason(thing)}"
        return f"{subject} {seen} after {asked}, and not {wanted.text}"

    thing = poll(lambda within: resource.get(name, within=within), over, timeout=left, describe=late)
    if wanted.met(thing):
        return
    status = picking.pick(thing.to_dict(), "status")
    reason = picking.pick(status, "reason") or _phase(thing)
    message = picking.pick(status, "message")
    phase = wanted.text.rpartition("=")[2]
    why = f"{subject} is {_phase(thing)} and will not become {phase}"
    raise Failure(f"{why}: {message}" if message else why, reason=str(reason), exit_code=OTHERWISE)


def _reason(thing: Record) -> str:
    reason = picking.pick(thing.to_dict(), "status.reason")
    return f" ({reason})" if reason else ""


def _phase(thing: Record) -> str:
    return str(picking.pick(thing.to_dict(), "status.phase") or "without a phase")
