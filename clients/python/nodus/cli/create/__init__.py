"""`nodus create`: make objects, from a file or from options."""

from __future__ import annotations

import click

from nodus._record import Record
from nodus._resources import Resource
from nodus.cli import changing
from nodus.cli.apply import send_all
from nodus.cli.changing import Report
from nodus.cli.create import agents, projects, runs, sandboxes
from nodus.cli.failures import usage
from nodus.cli.manifests import Wanted
from nodus.cli.selection import filename_option
from nodus.cli.session import Group, Session


@click.group(cls=Group, invoke_without_command=True)
@filename_option(required=False)
@changing.change_options
@click.pass_context
def create(ctx: click.Context, files: tuple[str, ...], report: Report) -> None:
    """Create objects from files or from options.

    A name that is taken is refused.

    \b
      nodus create -f runs.yaml
      nodus create agentrun triage --agent hello-agent --prompt "Summarize the logs"
    """
    if ctx.invoked_subcommand is not None:
        if files:
            raise usage(f"create {ctx.invoked_subcommand} reads no file: leave out -f, or the kind")
        return
    if not files:
        raise usage("create what? Give -f FILE, or a kind: " + ", ".join(create.list_commands(ctx)))

    def send(resource: Resource, one: Wanted) -> tuple[str, Record]:
        metadata = one.manifest["metadata"]
        made = resource.create(
            metadata["name"],
            one.manifest.get("spec") or {},
            labels=metadata.get("labels"),
            annotations=metadata.get("annotations"),
            dry_run=report.dry_run,
        )
        return "created", made

    send_all(ctx.ensure_object(Session), files, send, "created", report)


create.add_command(runs.agentrun)
create.add_command(runs.agentrun, "ar")
create.add_command(agents.agent)
create.add_command(runs.agentgroup)
create.add_command(runs.agentgroup, "ag")
create.add_command(sandboxes.sandbox)
create.add_command(sandboxes.sandbox, "sb")
create.add_command(projects.secret)
create.add_command(projects.budget)
create.add_command(projects.project)
create.add_command(projects.apikey)
