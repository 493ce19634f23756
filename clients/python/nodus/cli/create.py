"""`nodus create`: make objects, from a file or from options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodus._kinds import (
    AGENT,
    AGENT_GROUP,
    AGENT_RUN,
    API_KEY,
    API_VERSION,
    BUDGET,
    PROJECT,
    SANDBOX,
    SECRET,
    Kind,
)
from nodus._record import Record
from nodus._resources import Resource
from nodus.cli import changing, columns, completing, text, values
from nodus.cli.apply import send_all
from nodus.cli.changing import Report
from nodus.cli.failures import usage
from nodus.cli.kinds import Target
from nodus.cli.manifests import Wanted
from nodus.cli.selection import filename_option
from nodus.cli.session import Group, Session, pass_session

F = TypeVar("F", bound=Callable[..., Any])


def _money(option: str, what: str) -> Callable[[F], F]:
    return click.option(option, metavar="USD", help=what)


agent_option = click.option(
    "--agent",
    required=True,
    metavar="NAME",
    shell_complete=completing.names(AGENT),
    help="The agent, or the template claude-assistant.",
)
egress_options = [
    click.option(
        "--egress",
        type=click.Choice(["Deny", "AllowList", "Open"], case_sensitive=False),
        metavar="Deny|AllowList|Open",
        help="What commands may reach.",
    ),
    click.option("--allow", multiple=True, metavar="HOST", help="A host of the AllowList; several times."),
]


def _egress(command: F) -> F:
    for option in reversed(egress_options):
        command = option(command)
    return command


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


@create.command("agentrun")
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
    spec = _spec(
        agent=agent,
        input=prompt,
        parallelism=parallelism,
        keepAlive=keep_alive or None,
        deadline=deadline,
        group=group,
        taskKey=task_key,
        dependsOn=[*depends_on] or None,
    )
    _make(session, AGENT_RUN, name, spec, report)


create.add_command(agentrun, "ar")


@create.command("agent")
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
@_money("--max-cost", "What one run may spend on models.")
@click.option(
    "--max-tool-calls", type=click.IntRange(min=0), metavar="N", help="Calls that one run may make."
)
@click.option(
    "--max-parallel-agents", type=click.IntRange(min=0), metavar="N", help="Subagents at once (0: Unlimited)."
)
@click.option("--image", metavar="IMAGE", help="Image of its sandboxes.")
@click.option("--working-dir", metavar="PATH", help="Folder in which commands run.")
@click.option("--setup", metavar="COMMAND", help="What is run first in a new sandbox.")
@_egress
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
    egress: str | None,
    allow: tuple[str, ...],
) -> None:
    """Define an agent; a file (`nodus apply -f`) can say more.

    \b
      nodus create agent hello-agent --system "You are a careful assistant." --max-cost 0.50
      nodus create agent researcher --model openai/gpt-oss-20b --max-parallel-agents 8
    """
    implied = "BYOK" if api_key_secret else "OnDemand" if model else "Nodus"
    source = _spec(access=access or implied, name=model, families=[*families] or None)
    spec = _spec(
        system=system,
        model=source | _spec(apiKeySecret=api_key_secret),
        perRunMaxCostUSD=max_cost,
        maxToolCalls=max_tool_calls,
        maxParallelAgents=max_parallel_agents,
        image=image,
        workingDir=working_dir,
        setup=setup,
        network=_network(egress, allow),
    )
    _make(session, AGENT, name, spec, report)


@create.command("agentgroup")
@click.argument("name")
@agent_option
@click.option("--max-active", type=click.IntRange(min=1), metavar="N", help="Runs at work at once.")
@click.option("--max-pending", type=click.IntRange(min=1), metavar="N", help="Unfinished runs it takes.")
@_money("--max-cost", "What all its runs may spend on models.")
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
    limits = _spec(maxActive=max_active, maxPending=max_pending)
    _make(
        session,
        AGENT_GROUP,
        name,
        _spec(agent=agent, limits=limits or None, maxCostUSD=max_cost),
        report,
    )


create.add_command(agentgroup, "ag")


@create.command("sandbox")
@click.argument("name")
@click.option("--image", metavar="IMAGE", help="What runs in it (default: nodus/agent-tools).")
@click.option("--cpu", metavar="N", help="Processors.")
@click.option("--memory", metavar="GIB", help="GiB of memory.")
@click.option("--idle-timeout", metavar="DURATION", help="Stop it after so much idle time, such as 10m.")
@click.option("--ttl", metavar="DURATION", help="Delete it after that time, such as 24h.")
@_egress
@_money("--max-cost", "What it may cost.")
@changing.change_options
@pass_session
def sandbox(
    session: Session,
    name: str,
    *,
    image: str | None,
    cpu: str | None,
    memory: str | None,
    idle_timeout: str | None,
    ttl: str | None,
    egress: str | None,
    allow: tuple[str, ...],
    max_cost: str | None,
    report: Report,
) -> None:
    """Make a sandbox of one's own.

    \b
      nodus create sandbox dev --image nodus/agent-tools --cpu 1 --memory 2 --idle-timeout 10m --ttl 24h
    """
    resources = _spec(cpu=cpu, memory=memory)
    spec = _spec(
        image=image,
        resources=resources or None,
        idleTimeout=idle_timeout,
        ttl=ttl,
        network=_network(egress, allow),
        maxCostUSD=max_cost,
    )
    _make(session, SANDBOX, name, spec, report)


create.add_command(sandbox, "sb")


@create.command("secret")
@click.argument("name")
@click.option(
    "--from-literal", "literals", multiple=True, metavar="FIELD=VALUE", help="A field and its value."
)
@click.option(
    "--from-file",
    "from_files",
    multiple=True,
    metavar="[FIELD=]FILE|-",
    help="A field with what a file holds, or standard input; without FIELD it is called like the file.",
)
@changing.change_options
@pass_session
def secret(
    session: Session,
    name: str,
    *,
    literals: tuple[str, ...],
    from_files: tuple[str, ...],
    report: Report,
) -> None:
    """Store values that are never shown again.

    Such as a model provider's key. A value on the command line stays in the shell's history; --from-file FIELD=- reads
    it from standard input.

    \b
      nodus create secret anthropic-key --from-file ANTHROPIC_API_KEY=-
      nodus create secret model-key --from-literal OPENAI_API_KEY=…
    """
    _make(session, SECRET, name, {"data": values.read(literals, from_files)}, report)


@create.command("budget")
@click.argument("name")
@click.option(
    "--limit",
    required=True,
    metavar="USD",
    help="What the project may spend on models and sandboxes together.",
)
@changing.change_options
@pass_session
def budget(session: Session, name: str, *, limit: str, report: Report) -> None:
    """Limit what a project spends; what does not fit waits.

    \b
      nodus create budget product-showcase --limit 5.00
    """
    spec = {"period": "Total", "action": "Block", "limitUSD": limit}
    _make(session, BUDGET, name, spec, report)


@create.command("project")
@click.argument("name")
@click.option("--display-name", metavar="TEXT", help="What people call it.")
@changing.change_options
@pass_session
def project(session: Session, name: str, *, display_name: str | None, report: Report) -> None:
    """Make a project of the organization.

    \b
      nodus create project staging --display-name "Staging"
    """
    _make(session, PROJECT, name, _spec(displayName=display_name), report)


@create.command("apikey")
@click.argument("name")
@click.option("--role", type=click.Choice(["viewer", "editor", "admin"]), help="What it may do, in one word.")
@click.option(
    "--permission", "permissions", multiple=True, metavar="WORD", help="Or such as agentruns:read; several."
)
@click.option(
    "--for-project", "projects", multiple=True, metavar="NAME", help="Where it works; several (default: all)."
)
@click.option("--ttl", metavar="DURATION", help="How long it works, such as 30d (default: for ever).")
@changing.change_options
@pass_session
def apikey(
    session: Session,
    name: str,
    *,
    role: str | None,
    permissions: tuple[str, ...],
    projects: tuple[str, ...],
    ttl: str | None,
    report: Report,
) -> None:
    """Make an API key. Its token is printed now and never again.

    \b
      nodus create apikey ci --role editor --for-project web --ttl 30d
      nodus create apikey reader --permission agentruns:read -o jsonpath='{.status.token}'
    """
    if (role is None) is (not permissions):
        raise usage("give --role or --permission, one of them")
    spec = _spec(role=role, permissions=[*permissions] or None, projects=[*projects] or ["*"], ttl=ttl)
    made = _make(session, API_KEY, name, spec, report)
    token = columns.pick(made, "status.token")
    if token and report.speaks:
        click.echo(text.line(token))


def _make(session: Session, kind: Kind, name: str, spec: dict[str, Any], report: Report) -> dict[str, Any]:
    """Create one object; what is shown of it."""
    if not report.sends:
        thing: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": kind.name,
            "metadata": {"name": name},
            "spec": spec,
        }
    else:
        thing = session.resource(kind).create(name, spec, dry_run=report.dry_run).to_dict()
    report.say(Target(kind, name), "created", thing)
    return thing


def _spec(**fields: Any) -> dict[str, Any]:
    """The fields that are given."""
    return {name: value for name, value in fields.items() if value is not None}


def _network(policy: str | None, allow: tuple[str, ...]) -> dict[str, Any] | None:
    """The egress that is asked for: hosts to allow mean an AllowList."""
    if policy is None and not allow:
        return None
    return {"egress": {"policy": policy or "AllowList", **_spec(allow=[*allow] or None)}}
