"""`nodus create`: make objects without a file."""

from __future__ import annotations

from typing import Any

import click

from nodus.cli.kinds import AGENT_RUN, Target
from nodus.cli.session import Command, Group, Session, pass_session


@click.group(cls=Group)
def create() -> None:
    """Create an object without a file."""


@create.command("agentrun", cls=Command)
@click.argument("name")
@click.option("--agent", required=True, metavar="NAME", help="The agent, or the template claude-assistant.")
@click.option("--prompt", required=True, metavar="TEXT", help="The task.")
@click.option(
    "--parallelism", type=click.IntRange(min=0), metavar="N", help="Subtasks at work together (0: Auto)."
)
@click.option("--keep-alive", is_flag=True, help="Wait for messages after each answer.")
@pass_session
def agentrun(
    session: Session, name: str, *, agent: str, prompt: str, parallelism: int | None, keep_alive: bool
) -> None:
    """Start a run.

    \b
      nodus create agentrun triage --agent hello-agent --prompt "Summarize the logs"
    """
    spec: dict[str, Any] = {"agent": agent, "input": prompt}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    if keep_alive:
        spec["keepAlive"] = True
    session.client.agentruns.create(name, spec)
    click.echo(f"{Target(AGENT_RUN, name)} created")


create.add_command(agentrun, "ar")
