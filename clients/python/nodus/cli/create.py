"""`nodus create`: make objects without a file."""

from __future__ import annotations

from typing import Any

import click

from nodus.cli import values
from nodus.cli.kinds import AGENT_RUN, SECRET, Target
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
@click.option(
    "--deadline", metavar="DURATION", help="End the run if it is not done by then, such as 20s, 90m or 2h."
)
@pass_session
def agentrun(
    session: Session,
    name: str,
    *,
    agent: str,
    prompt: str,
    parallelism: int | None,
    keep_alive: bool,
    deadline: str | None,
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
    if deadline is not None:
        spec["deadline"] = deadline
    session.client.agentruns.create(name, spec)
    click.echo(f"{Target(AGENT_RUN, name)} created")


create.add_command(agentrun, "ar")


@create.command("secret", cls=Command)
@click.argument("name")
@click.option(
    "--from-literal", "literals", multiple=True, metavar="FIELD=VALUE", help="A field and its value."
)
@click.option(
    "--from-file",
    "files",
    multiple=True,
    metavar="[FIELD=]FILE|-",
    help="A field with what a file holds, or standard input; without FIELD it is called like the file.",
)
@pass_session
def secret(session: Session, name: str, *, literals: tuple[str, ...], files: tuple[str, ...]) -> None:
    """Store values that are never shown again, such as a model provider's key.

    A value on the command line stays in the shell's history; --from-file FIELD=- reads it from standard input.

    \b
      nodus create secret anthropic-key --from-file ANTHROPIC_API_KEY=-
      nodus create secret model-key --from-literal OPENAI_API_KEY=…
    """
    data = values.read(literals, files)
    session.client.secrets.create(name, {"data": data})
    click.echo(f"{Target(SECRET, name)} created")
