"""The frozen execution context: everything a run pins when it is admitted (NOD-025, NOD-036)."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from nodus_core.conversations.machine import CPU_UNITS, Machine
from nodus_core.inference.exchange import DEFAULT_MAX_TOKENS
from nodus_core.inference.target import OwnKey, Wire
from nodus_core.kernel.sandboxes import SecretVariable
from nodus_core.resources.defaults import DEFAULT_EGRESS, DEFAULT_FOLDER, DEFAULT_IMAGE, DEFAULT_TOOL_CALLS


@dataclass(frozen=True)
class ModelChoice:
    """`spec.model` as admitted. `name` is None for managed routing, `max_tokens` bounds each reply.

    `own_key` stands for access BYOK, and `wire` is then the provider's.
    """

    access: str
    name: str | None = None
    families: tuple[str, ...] = ()
    max_tokens: int = DEFAULT_MAX_TOKENS
    wire: Wire = "anthropic"
    own_key: OwnKey | None = None


@dataclass(frozen=True)
class GitSource:
    """`spec.source.git` as admitted, and the name of the Connection that reads it. `ref` None: the default branch."""

    repo: str
    ref: str | None
    connection: str
    strip: ClassVar[int] = 0

    @property
    def shown(self) -> str:
        """What a person reads of it."""
        return f"{self.repo} {self.ref}" if self.ref else self.repo

    def status(self, version: str) -> dict[str, str]:
        """What a run shows of it once it has this commit."""
        return {"repo": self.repo, **({"ref": self.ref} if self.ref else {}), "commit": version}


@dataclass(frozen=True)
class ArchiveSource:
    """`spec.source.archive` as admitted. `sha256` None: whatever is at the address; `strip` counts folders."""

    url: str
    sha256: str | None
    strip: int

    @property
    def shown(self) -> str:
        """What a person reads of it."""
        return self.url

    def status(self, version: str) -> dict[str, str]:
        """What a run shows of it once it has the archive with this SHA-256."""
        return {"url": self.url, "sha256": version}


Source = GitSource | ArchiveSource


@dataclass(frozen=True)
class Context:
    """Settings of the agent and the run, copied at admission; later edits of the agent do not reach them.

    `image` is as people name it, `pull` the same by its digest (None: the machine's own tools); `egress` is `Deny`,
    `AllowList` or `Open`, `allow` the entries of an AllowList; `state_dir` is the folder that Snapshotted continuity keeps;
    `cpu` is in vCPU, `memory` in MiB.
    """

    agent: str
    agent_generation: int
    system: str
    model: ModelChoice
    working_dir: str = DEFAULT_FOLDER
    setup: str | None = None
    image: str = DEFAULT_IMAGE
    pull: str | None = None
    egress: str = DEFAULT_EGRESS
    allow: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict[str, str])
    max_tool_calls: int = DEFAULT_TOOL_CALLS
    max_parallel_agents: int = 0
    parallelism: int = 0
    state_dir: str | None = None
    source: Source | None = None
    cpu: int = 1
    memory: int = 2048
    secrets: tuple[SecretVariable, ...] = ()

    @property
    def machine(self) -> Machine:
        """The sandbox that the run gets."""
        return Machine(
            image=self.image,
            pull=self.pull,
            cpu=self.cpu * CPU_UNITS,
            memory=self.memory,
            egress=self.egress,
            allow=self.allow,
            working_dir=self.working_dir,
            env=dict(self.env),
            secrets=self.secrets,
            state_dir=self.state_dir,
        )

    def to_json(self) -> str:
        """The text that is stored with the conversation."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Context":
        """What `to_json` wrote; fields of later releases are ignored."""
        values = json.loads(text)
        model = values.pop("model")
        known = {name: value for name, value in values.items() if name in cls.__dataclass_fields__}
        known["secrets"] = tuple(SecretVariable(**each) for each in known.get("secrets", ()))
        known["allow"] = tuple(known.get("allow", ()))
        known["source"] = _source(known.get("source"))
        return cls(
            model=ModelChoice(
                access=model["access"],
                name=model.get("name"),
                families=tuple(model.get("families", ())),
                max_tokens=model.get("max_tokens", DEFAULT_MAX_TOKENS),
                wire=model.get("wire", "anthropic"),
                own_key=OwnKey(**model["own_key"]) if model.get("own_key") else None,
            ),
            **known,
        )


def _source(values: dict[str, Any] | None) -> Source | None:
    if not values:
        return None
    return ArchiveSource(**values) if "url" in values else GitSource(**values)
