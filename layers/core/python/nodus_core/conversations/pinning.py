"""What a new run pins: its agent's settings, its model, its deadline and its texts, checked before anything is stored."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from nodus_core.access.door import Place
from nodus_core.conversations.agents import agent_named
from nodus_core.conversations.availability import check_available
from nodus_core.conversations.connections import connection_for
from nodus_core.conversations.context import ArchiveSource, Context, GitSource, ModelChoice, Source
from nodus_core.conversations.images import Images, Pinned
from nodus_core.conversations.own_keys import check_own_key
from nodus_core.conversations.secret_variables import pinned as pinned_secrets
from nodus_core.conversations.shelf import Shelf, as_text, check_unseen, key_of
from nodus_core.inference.exchange import DEFAULT_MAX_TOKENS
from nodus_core.inference.own_keys import WIRES
from nodus_core.inference.target import OwnKey
from nodus_core.journal import lines
from nodus_core.journal.payloads import Scope
from nodus_core.kernel import projection
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Input, Object, ObjectKey
from nodus_core.kernel.sandboxes import SecretVariable
from nodus_core.kernel.states import InputState
from nodus_core.kernel.text import Text
from nodus_core.resources import defaults, workspace
from nodus_core.resources.agent import STOPPED, AgentSpec
from nodus_core.resources.agentrun import AgentRunSpec, deadline, with_moment
from nodus_core.resources.fields import money
from nodus_core.resources.inference_source import ModelSpec
from nodus_core.resources.manifest import Manifest, check_spec
from nodus_core.resources.refusals import invalid
from nodus_core.resources.selectors import selectable

LATEST_DEADLINE = timedelta(days=3653)
"""Ten years: no run needs more, and all that is reckoned from such a moment stays a date."""


@dataclass(frozen=True)
class _Agent:
    """An agent as it was read: its object (whose version the admission checks) and its spec."""

    object: Object
    spec: AgentSpec


@dataclass(frozen=True)
class Admitted:
    """A run that may be stored: its rows, the agent that the commit makes sure of, and the spec as it is answered."""

    object: Object
    conversation: Conversation
    first: Input
    agent: Object
    spec: dict[str, Any]


def pinned(images: Images, place: Place, uid: str, manifest: Manifest, now: datetime) -> Admitted:
    """A run as it is to be stored: all that it needs is pinned, and its long texts are kept.

    Raises `Refusal` as `Admission.admit_run` does for the run itself.
    """
    shelf = images.shelf
    check_unseen(manifest)
    spec = check_spec(AGENT_RUN, manifest.name, manifest.spec)
    if not isinstance(spec, AgentRunSpec):
        raise TypeError(f"{manifest.kind} is not admitted as a run")
    _check_deadline(manifest.name, spec, now)
    fixed = with_moment(manifest.spec, now)
    agent = _agent(shelf, place, spec.agent)
    check_available(manifest.name, spec, spec.agent, agent.spec)
    key, model = key_of(place, AGENT_RUN, manifest.name), _choice(spec.model or agent.spec.model)
    if model.own_key is not None:
        field = "spec.model.apiKeySecret" if spec.model else "spec.agent"
        check_own_key(shelf.journal, key, model.wire, model.own_key, field)
    image = images.pinned(key, agent.spec.image, "spec.agent")
    source = _source(shelf, key, agent)
    cap = money(agent.spec.per_run_max_cost_usd or defaults.DEFAULT_COST)
    scope, said = Scope(place.org, uid), manifest.metadata
    put = partial(shelf.payloads.put, scope)
    obj = Object(
        key=key,
        uid=uid,
        version=0,
        generation=1,
        spec=put(as_text(fixed)),
        created_at=now,
        status=projection.queued(agent.object.generation, cap),
        labels=said.labels or {},
        annotations=shelf.noted(scope, said.annotations),
        selectable=selectable(manifest.spec),
    )
    secrets = pinned_secrets(shelf.journal, agent.spec.secrets or (), key, "spec.agent")
    context = replace(_context(agent, spec, image, secrets), source=source)
    conversation = _conversation(obj, spec, put(context.to_json()), cap)
    first = _first_input(obj, put(spec.input), place.caller)
    return Admitted(obj, conversation, first, agent.object, fixed)


def _agent(shelf: Shelf, place: Place, name: str) -> _Agent:
    """The agent of that name, which must take runs."""
    obj = agent_named(shelf, place.org, place.project, name)
    spec = check_spec("Agent", name, shelf.spec(obj))
    if not isinstance(spec, AgentSpec):
        raise TypeError(f"{obj.key} is no agent")
    if spec.state == STOPPED:
        message = f"agent {name!r} is stopped and takes no runs; remove its spec.state first"
        raise Refusal("AgentStopped", message, kind="Agent", name=name)
    return _Agent(obj, spec)


def _conversation(obj: Object, spec: AgentRunSpec, context: Text, cap: Decimal) -> Conversation:
    """The run's conversation."""
    return Conversation(
        id=obj.uid,
        object=obj.key,
        context=context,
        line=lines.first(obj.created_at),
        created_at=obj.created_at,
        cap=cap,
        keep_alive=spec.keep_alive or False,
        accepted=1,
        deadline=deadline(spec.deadline, obj.created_at) if spec.deadline else None,
    )


def _first_input(obj: Object, text: Text, author: str) -> Input:
    return Input(
        conversation=obj.uid,
        seq=1,
        text=text,
        state=InputState.QUEUED,
        origin="person",
        author=author,
        created_at=obj.created_at,
    )


def _check_deadline(name: str, spec: AgentRunSpec, now: datetime) -> None:
    if spec.deadline is None:
        return
    at = deadline(spec.deadline, now)
    if at <= now:
        raise invalid(AGENT_RUN, name, (Cause("spec.deadline", "must lie in the future"),))
    if at - now > LATEST_DEADLINE:
        message = f"must lie at most {LATEST_DEADLINE.days} days ahead"
        raise invalid(AGENT_RUN, name, (Cause("spec.deadline", message),))


def _context(agent: _Agent, run: AgentRunSpec, image: Pinned, secrets: tuple[SecretVariable, ...]) -> Context:
    """What the run pins: the agent's settings, with the run's own model in place of the agent's (NODQ-30)."""
    spec = agent.spec
    egress = spec.network.egress if spec.network else None
    return Context(
        agent=agent.object.key.name,
        agent_generation=agent.object.generation,
        system=spec.system or "",
        model=_choice(run.model or spec.model),
        working_dir=spec.working_dir or defaults.DEFAULT_FOLDER,
        setup=spec.setup,
        image=image.image,
        pull=image.pull,
        egress=egress.policy if egress else defaults.DEFAULT_EGRESS,
        allow=tuple(egress.allow or ()) if egress else (),
        env={variable.name: variable.value for variable in spec.env or []},
        max_tool_calls=defaults.DEFAULT_TOOL_CALLS if spec.max_tool_calls is None else spec.max_tool_calls,
        max_parallel_agents=spec.max_parallel_agents or 0,
        parallelism=run.parallelism or 0,
        state_dir=spec.continuity.state_dir if spec.continuity else None,
        secrets=secrets,
    )


def _source(shelf: Shelf, run: ObjectKey, agent: _Agent) -> Source | None:
    """The repository, and the Connection that reads it, or the archive. Raises `Refusal` where none does (NOD-151)."""
    name = agent.object.key.name
    match agent.spec.source:
        case workspace.Source(git=workspace.Git() as git):
            return GitSource(git.repo, git.ref, connection_for(shelf, run, name, git.repo))
        case workspace.Source(archive=workspace.Archive() as archive):
            if not shelf.allowed.allows_archive(archive.url):
                raise _archive_not_allowed(run, name, archive)
            return ArchiveSource(archive.url, archive.sha256, archive.strip_components or 0)
        case _:
            return None


def _archive_not_allowed(run: ObjectKey, agent: str, archive: workspace.Archive) -> Refusal:
    message = (
        f"AgentRun {run.name!r} cannot be run: agent {agent!r} takes its files from an archive at "
        f"{urlsplit(archive.url).hostname}, and the operator has not allowed archives of this host. Ask for it "
        "(archiveHosts), or name an address at a host that is allowed."
    )
    cause = Cause("spec.agent", f"names agent {agent!r}, whose spec.source.archive.url is not allowed")
    return Refusal("Invalid", message, causes=(cause,), kind=run.kind, name=run.name)


def _choice(model: ModelSpec | None) -> ModelChoice:
    if model is None:
        return ModelChoice("Nodus")
    own_key = None
    if model.api_key_secret is not None:
        own_key = OwnKey(model.api_key_secret, model.api_key_field, model.base_url)
    return ModelChoice(
        access=model.access,
        name=model.name,
        families=tuple(model.families or ()),
        max_tokens=DEFAULT_MAX_TOKENS if model.max_tokens is None else model.max_tokens,
        wire=WIRES[model.protocol or "Anthropic"],
        own_key=own_key,
    )
