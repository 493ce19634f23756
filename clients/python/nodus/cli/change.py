"""`nodus patch`, `nodus cancel` and `nodus delete`: change what exists."""

from __future__ import annotations

from typing import Any

import click

from nodus._kinds import AGENT_RUN
from nodus._manifest import parse_json
from nodus._record import Record
from nodus._waiting import poll
from nodus.cli import changing, durations, picking, sources, text
from nodus.cli.changing import Report
from nodus.cli.failures import usage
from nodus.cli.selection import Choice, Subject, choice_options
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import NotFoundError

MOST_BYTES = 5 * 1024 * 1024


@click.command(cls=Command)
@choice_options
@click.option("--patch", "patch_text", metavar="JSON", help="A JSON merge patch.")
@click.option("--patch-file", metavar="FILE|-", help="The same from a file, or from standard input (-).")
@changing.change_options
@pass_session
def patch(
    session: Session,
    choice: Choice,
    *,
    patch_text: str | None,
    patch_file: str | None,
    report: Report,
) -> int:
    """Merge a JSON object into objects; null removes a field.

    \b
      nodus patch agent/hello-agent --patch '{"spec":{"maxParallelAgents":0}}'
      nodus patch ag/parallel-agents --patch '{"spec":{"sealed":true}}'
    """
    if (patch_text is None) is (patch_file is None):
        raise usage("give the patch once: --patch JSON, or --patch-file FILE")
    given = sources.text(patch_file, MOST_BYTES) if patch_file is not None else patch_text or ""
    merge = parse_json(given, patch_file or "--patch")

    def change(subject: Subject) -> None:
        resource = session.resource(subject.target.kind, subject.project)
        if not report.sends:
            thing = resource.get(subject.target.name)
        else:
            thing = resource.patch(subject.target.name, merge, dry_run=report.dry_run)
        report.say(subject.target, "patched", thing.to_dict())

    return changing.each(choice.find(session), change)


@click.command(cls=Command)
@choice_options
@pass_session
def cancel(session: Session, choice: Choice) -> int:
    """Stop unfinished runs.

    What they have done stays readable.

    \b
      nodus cancel agentrun/triage
      nodus cancel ar -l team=web
    """

    def stop(subject: Subject) -> None:
        if subject.target.kind is not AGENT_RUN:
            raise usage(
                f"{subject.target.kind.word} objects do nothing that could be cancelled; give agentrun/NAME"
            )
        runs = session.client.in_project(subject.project).agentruns
        thing = runs.cancel(subject.target.name)
        phase = picking.pick(thing.to_dict(), "status.phase")
        if phase in {"Succeeded", "Failed"}:
            click.echo(f"{text.line(subject)} has finished already ({phase})")
        else:
            click.echo(f"{text.line(subject)} {'cancelled' if phase == 'Cancelled' else 'cancelling'}")

    return changing.each(choice.find(session), stop)


@click.command(cls=Command)
@choice_options
@click.option(
    "--wait",
    "wait_for_it",
    type=bool,
    default=True,
    metavar="BOOLEAN",
    help="Return when the objects are gone (default); --wait=false returns at once.",
)
@click.option("--timeout", type=durations.DURATION, default="5m", help="How long to wait (default: 5m).")
@click.option("--ignore-not-found", is_flag=True, help="An object that does not exist is no error.")
@changing.change_options
@pass_session
def delete(
    session: Session,
    choice: Choice,
    *,
    wait_for_it: bool,
    timeout: float,
    ignore_not_found: bool,
    report: Report,
) -> int:
    """Delete objects.

    An unfinished run is cancelled first. What a selector or --all has found is deleted, and nothing that has taken
    its name since.

    \b
      nodus delete agentrun/triage agent/hello-agent
      nodus delete -f runs.yaml
      nodus delete ar -l team=web
      nodus delete agentrun/triage --wait=false
    """
    uids: dict[Subject, Any] = {}

    def begin(subject: Subject) -> None:
        try:
            left = _ask_to_go(session, subject, report)
        except NotFoundError:
            if not ignore_not_found:
                raise
            return
        if report.dry_run or left.get("kind", "Status") == "Status":
            report.say(subject.target, "deleted", left)
        else:
            uids[subject] = picking.pick(left, "metadata.uid")

    def finish(subject: Subject) -> None:
        if wait_for_it:
            wait_until_gone(session, subject, uids[subject], timeout)
        click.echo(f"{text.line(subject)} {'deleted' if wait_for_it else 'deleting'}")

    begun = changing.each(choice.find(session), begin)
    return max(begun, changing.each(uids, finish))


def _ask_to_go(session: Session, subject: Subject, report: Report) -> dict[str, Any]:
    """Delete an object, if anything is sent: the object that is going, or the ``Status`` of one that is gone."""
    if not report.sends:
        return {}
    resource = session.resource(subject.target.kind, subject.project)
    return resource.delete(subject.target.name, uid=subject.uid, dry_run=report.dry_run).to_dict()


def wait_until_gone(session: Session, subject: Subject, uid: Any, timeout: float) -> None:
    """Wait until an object, or the one with this uid, does not exist.

    Raises:
        WaitTimeoutError: it still does.
    """
    resource = session.resource(subject.target.kind, subject.project)

    def read(within: float) -> Record | None:
        try:
            return resource.get(subject.target.name, within=within)
        except NotFoundError:
            return None

    poll(
        read,
        # Another object of that name is not the one that goes.
        lambda seen: seen is None or (uid and picking.pick(seen.to_dict(), "metadata.uid") != uid),
        timeout=timeout,
        describe=lambda _: (
            f"{subject} is still there after {durations.shown(timeout)}; if it was deleted, that goes on"
        ),
    )
