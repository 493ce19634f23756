"""`nodus create agentrun` and `nodus create agentgroup`: work for agents."""

from __future__ import annotations

import click

from nodus._kinds import AGENT, AGENT_GROUP, AGENT_RUN
from nodus.cli import changing, completing
from nodus.cli.changing import Report
from nodus.cli.create.making import given, make, money_option
from nodus.cli.session import Command, Session, pass_session

agent_option = click.option(
    "--agent",
    required=True,
    metavar="NAME",
    shell_complete=completing.names(AGENT),
    help="The agent, or the template claude-assistant.",
)


@click.command("agentrun", cls=Command)
@click.argument("name")
@agent_option
@click.option("--prompt", required=True, metavar="TEXT", help="The task.")
@click.option(
    "--parallelism", type=click.IntRange(min=0), metavar="N", help="Subtasks at work together (0: Auto)."
)
@click.option("--keep-alive", is_flag=True, help="Wait for messages after each answer.")
@click.option(
    "--deadline", metavar="DURATION", help="End the run if it is not done by then, such as 20s, 90m or 2h."
)
@click.option("--group", metavar="NAME", help="The AgentGroup that it belongs to.")
@click.option("--task-key", metavar="KEY", help="Its key in the group.")
@click.option(
    "--depends-on", multiple=True, metavar="KEY", help="A member that must succeed first; several times."
)
@changing.change_options
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
    group: str | None,
    task_key: str | None,
    depends_on: tuple[str, ...],
    report: Report,
) -> None:
    """Start a run.

    \b
      nodus create agentrun triage --agent hello-agent --prompt "Summarize the logs"
    """
    spec = given(
        agent=agent,
        input=prompt,
        parallelism=parallelism,
        keepAlive=keep_alive or None,
        deadline=deadline,
        group=group,
        taskKey=task_key,
        dependsOn=[*depends_on] or None,
    )
    make(session, AGENT_RUN, name, spec, report)


@click.command("agentgroup", cls=Command)
@click.argument("name")
@agent_option
@click.option("--max-active", type=click.IntRange(min=1), metavar="N", help="Runs at work at once.")
@click.option("--max-pending", type=click.IntRange(min=1), metavar="N", help="Unfinished runs it takes.")
@money_option("--max-cost", "What all its runs may spend on models.")
@changing.change_options
@pass_session
def agentgroup(
    session: Session,
    name: str,
    *,
    agent: str,
    max_active: int | None,
    max_pending: int | None,
    max_cost: str | None,
    report: Report,
) -> None:
    """Make a group of runs that go on side by side under one cap.

    \b
      nodus create agentgroup parallel-agents --agent parallel-agents-worker --max-active 2 --max-cost 0.60
    """
    limits = given(maxActive=max_active, maxPending=max_pending)
    make(
        session,
        AGENT_GROUP,
        name,
        given(agent=agent, limits=limits or None, maxCostUSD=max_cost),
        report,
    )
