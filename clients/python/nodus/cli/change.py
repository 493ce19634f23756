"""`nodus cancel`, `nodus delete` and `nodus patch`: change what exists."""

from __future__ import annotations

import click

from nodus._manifest import parse_json
from nodus._record import Record
from nodus._waiting import poll
from nodus.cli import columns, durations
from nodus.cli.failures import usage
from nodus.cli.kinds import AGENT_RUN, Target, target_argument
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import NotFoundError


@click.command(cls=Command)
@target_argument
@pass_session
def cancel(session: Session, target: Target) -> None:
    """Stop an unfinished run; what it has done stays readable.

    \b
      nodus cancel agentrun/triage
    """
    if target.kind is not AGENT_RUN:
        raise usage(f"{target.kind.word} objects do nothing that could be cancelled; give agentrun/NAME")
    phase = columns.pick(session.client.agentruns.cancel(target.name).to_dict(), "status.phase")
    if phase in {"Succeeded", "Failed"}:
        click.echo(f"{target} has finished already ({phase})")
    else:
        click.echo(f"{target} {'cancelled' if phase == 'Cancelled' else 'cancelling'}")


@click.command(cls=Command)
@target_argument
@click.option(
    "--wait",
    "wait_for_it",
    type=bool,
    default=True,
    metavar="BOOLEAN",
    help="Return when the object is gone (default); --wait=false returns at once.",
)
@click.option("--timeout", type=durations.DURATION, default="5m", help="How long to wait (default: 5m).")
@pass_session
def delete(session: Session, target: Target, wait_for_it: bool, timeout: float) -> None:
    """Delete an object; an unfinished run is cancelled first.

    \b
      nodus delete agentrun/triage
      nodus delete agentrun/triage --wait=false
    """
    resource = session.resource(target.kind)
    going = resource.delete(target.name)
    uid = columns.pick(going.to_dict(), "metadata.uid")
    if going.get("kind") == "Status":
        click.echo(f"{target} deleted")
        return
    if not wait_for_it:
        click.echo(f"{target} deleting")
        return

    def read(within: float) -> Record | None:
        try:
            return resource.get(target.name, within=within)
        except NotFoundError:
            return None

    poll(
        read,
        # Another object of that name is not the one that goes.
        lambda seen: seen is None or columns.pick(seen.to_dict(), "metadata.uid") != uid,
        timeout=timeout,
        describe=lambda _: f"{target} is still there after {durations.shown(timeout)}; its deletion goes on",
    )
    click.echo(f"{target} deleted")


@click.command(cls=Command)
@target_argument
@click.option("--patch", "patch_text", required=True, metavar="JSON", help="A JSON merge patch.")
@pass_session
def patch(session: Session, target: Target, patch_text: str) -> None:
    """Merge a JSON object into an object; null removes a field.

    \b
      nodus patch agent/hello-agent --patch '{"spec":{"maxParallelAgents":0}}'
    """
    session.resource(target.kind).patch(target.name, parse_json(patch_text, "--patch"))
    click.echo(f"{target} patched")
