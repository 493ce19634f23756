"""`nodus create agent`."""

from __future__ import annotations

import click

from nodus._kinds import AGENT
from nodus.cli import changing
from nodus.cli.changing import Report
from nodus.cli.create.egress import egress_options, network
from nodus.cli.create.making import given, make, money_option
from nodus.cli.create.variables import variable_options, variables
from nodus.cli.session import Command, Session, pass_session


@click.command("agent", cls=Command)
@click.argument("name")
@click.option("--system", metavar="TEXT", help="The system prompt.")
@click.option(
    "--access",
    type=click.Choice(["Nodus", "OnDemand", "BYOK"], case_sensitive=False),
    metavar="Nodus|OnDemand|BYOK",
    help="Where inference comes from (default: Nodus, with --model OnDemand, with a secret BYOK).",
)
@click.option("--model", metavar="NAME", help="The model, with OnDemand and BYOK.")
@click.option("--family", "families", multiple=True, metavar="WORD", help="A Claude family that may be used.")
@click.option("--api-key-secret", metavar="NAME", help="The Secret with your own provider key.")
@money_option("--max-cost", "What one run may spend on models.")
@click.option(
    "--max-tool-calls", type=click.IntRange(min=0), metavar="N", help="Calls that one run may make."
)
@click.option(
    "--max-parallel-agents", type=click.IntRange(min=0), metavar="N", help="Subagents at once (0: Unlimited)."
)
@click.option("--image", metavar="IMAGE", help="Image of its sandboxes.")
@click.option("--working-dir", metavar="PATH", help="Folder in which commands run.")
@click.option("--setup", metavar="COMMAND", help="What is run first in a new sandbox.")
@variable_options
@egress_options
@changing.change_options
@pass_session
def agent(
    session: Session,
    name: str,
    *,
    report: Report,
    system: str | None,
    access: str | None,
    model: str | None,
    families: tuple[str, ...],
    api_key_secret: str | None,
    max_cost: str | None,
    max_tool_calls: int | None,
    max_parallel_agents: int | None,
    image: str | None,
    working_dir: str | None,
    setup: str | None,
    env: tuple[str, ...],
    secrets: tuple[str, ...],
    egress: str | None,
    allow: tuple[str, ...],
) -> None:
    """Define an agent; a file (`nodus apply -f`) can say more.

    \b
      nodus create agent hello-agent --system "You are a careful assistant." --max-cost 0.50
      nodus create agent researcher --model openai/gpt-oss-20b --max-parallel-agents 8
    """
    implied = "BYOK" if api_key_secret else "OnDemand" if model else "Nodus"
    source = given(access=access or implied, name=model, families=[*families] or None)
    spec = given(
        system=system,
        model=source | given(apiKeySecret=api_key_secret),
        perRunMaxCostUSD=max_cost,
        maxToolCalls=max_tool_calls,
        maxParallelAgents=max_parallel_agents,
        image=image,
        workingDir=working_dir,
        setup=setup,
        network=network(egress, allow),
        **variables(env, secrets),
    )
    make(session, AGENT, name, spec, report)
