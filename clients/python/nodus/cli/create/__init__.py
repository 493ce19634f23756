"""`nodus create`: make objects, from a file or from options."""

from __future__ import annotations

import click

from nodus.cli import changing, manifests, sending
from nodus.cli.changing import Report
from nodus.cli.create import agents, batches, projects, runs, sandboxes
from nodus.cli.failures import usage
from nodus.cli.selection import filename_option
from nodus.cli.sending import Done, Part
from nodus.cli.session import Group, Session


@click.group(cls=Group, invoke_without_command=True)
@filename_option(required=False)
@changing.change_options
@click.pass_context
def create(ctx: click.Context, files: tuple[str, ...], report: Report) -> None:
    """Create objects from files or from options.

    A name that is taken is refused; metadata.generateName instead of a name makes one that is not. The runs of an AgentRunList, 100 at most, are created together: all of them, or
    none where one is refused. Every other object is created by itself, in the order of the files. The token of an
    ApiKey is printed now and never again.

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

    session = ctx.ensure_object(Session)
    parts = batches.parts(manifests.read(files, session.project, new=True), session.project)
    sending.in_parts(parts, lambda part: _create(session, part, report), "created", report)


def _create(session: Session, part: Part, report: Report) -> list[Done]:
    first, metadata = part[0], part[0].manifest["metadata"]
    if batches.is_of_batch(first):
        place = session.client.in_project(first.project)
        made = place.agentruns.create_many([one.manifest for one in part], dry_run=report.dry_run)
        return [("created", run) for run in made]
    one = session.resource(first.target.kind, first.project).create(
        metadata.get("name"),
        first.manifest.get("spec") or {},
        generate_name=None if metadata.get("name") else metadata.get("generateName"),
        labels=metadata.get("labels"),
        annotations=metadata.get("annotations"),
        dry_run=report.dry_run,
    )
    return [("created", one)]


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
