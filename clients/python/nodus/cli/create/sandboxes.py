"""`nodus create sandbox`."""

from __future__ import annotations

import click

from nodus._kinds import SANDBOX
from nodus._sandboxes import SIZES
from nodus.cli import changing
from nodus.cli.changing import Report
from nodus.cli.create.egress import egress_options, network
from nodus.cli.create.making import given, make, money_option
from nodus.cli.create.variables import variable_options, variables
from nodus.cli.session import Command, Session, pass_session


@click.command("sandbox", cls=Command)
@click.argument("name")
@click.option("--image", metavar="IMAGE", help="What runs in it (default: nodus/agent-tools).")
@click.option(
    "--size",
    type=click.Choice([*SIZES], case_sensitive=False),
    metavar="|".join(SIZES),
    help="Its size in a word, in place of --cpu and --memory.",
)
@click.option("--cpu", metavar="N", help="Processors.")
@click.option("--memory", metavar="GIB", help="GiB of memory.")
@click.option(
    "--gpu", type=click.IntRange(min=0), metavar="N", help="GPUs, where the server has machines with some."
)
@click.option("--idle-timeout", metavar="DURATION", help="Stop it after so much idle time, such as 10m.")
@click.option("--ttl", metavar="DURATION", help="Delete it after that time, such as 24h.")
@variable_options
@click.option(
    "--state-dir", metavar="DIR", help="Save this folder when it stops, and restore it when it starts again."
)
@egress_options
@money_option("--max-cost", "What it may cost.")
@changing.change_options
@pass_session
def sandbox(
    session: Session,
    name: str,
    *,
    image: str | None,
    size: str | None,
    cpu: str | None,
    memory: str | None,
    gpu: int | None,
    idle_timeout: str | None,
    ttl: str | None,
    env: tuple[str, ...],
    secrets: tuple[str, ...],
    state_dir: str | None,
    egress: str | None,
    allow: tuple[str, ...],
    max_cost: str | None,
    report: Report,
) -> None:
    """Make a sandbox of one's own.

    \b
      nodus create sandbox dev --image nodus/agent-tools --cpu 1 --memory 2 --idle-timeout 10m --ttl 24h
      nodus create sandbox dev --size Performance --secret DEPLOY_KEY=deploy/token
    """
    if size and (cpu or memory):
        raise click.UsageError("--size stands for --cpu and --memory: give it alone")
    resources = {**(SIZES[size] if size else given(cpu=cpu, memory=memory)), **given(gpu=gpu)}
    spec = given(
        image=image,
        resources=resources or None,
        idleTimeout=idle_timeout,
        ttl=ttl,
        network=network(egress, allow),
        continuity={"mode": "Snapshotted", "stateDir": state_dir} if state_dir else None,
        maxCostUSD=max_cost,
        **variables(env, secrets),
    )
    make(session, SANDBOX, name, spec, report)
