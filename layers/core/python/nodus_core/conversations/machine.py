"""What a sandbox is: what its task is asked for, frozen when a run is admitted or a Sandbox is made."""

import json
from dataclasses import asdict, dataclass, field

from nodus_core.kernel.sandboxes import SecretVariable
from nodus_core.resources.defaults import DEFAULT_EGRESS, DEFAULT_FOLDER, DEFAULT_IMAGE

CPU_UNITS = 1024
"""Units of one virtual processor."""


@dataclass(frozen=True)
class Machine:
    """Settings of one sandbox. `image` is as people name it, `pull` the same by its digest, None: what the machine
    under it has. `cpu` is in units of 1/1024 processor, `memory` in MiB; `egress` is `Deny`,
    `AllowList` or `Open`, `allow` the entries of an AllowList; `idle_s` is after how many seconds without work it is stopped, None: never; `most_usd` is
    what its time may cost in all, as text, None: anything; `state_dir` is the folder that is saved, None: none is; `gpus` is how many
    it has, and with some `hourly_usd` what an hour of it costs, as text: the price is that of the day when it was made."""

    image: str = DEFAULT_IMAGE
    pull: str | None = None
    cpu: int = CPU_UNITS
    memory: int = 2048
    egress: str = DEFAULT_EGRESS
    allow: tuple[str, ...] = ()
    working_dir: str = DEFAULT_FOLDER
    env: dict[str, str] = field(default_factory=dict[str, str])
    idle_s: float | None = None
    most_usd: str | None = None
    secrets: tuple[SecretVariable, ...] = ()
    state_dir: str | None = None
    gpus: int = 0
    hourly_usd: str | None = None

    def to_json(self) -> str:
        """The text that is stored with the conversation of a Sandbox."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> "Machine":
        """What `to_json` wrote; fields of later releases are ignored."""
        known = {key: item for key, item in json.loads(text).items() if key in cls.__dataclass_fields__}
        known["secrets"] = tuple(SecretVariable(**each) for each in known.get("secrets", ()))
        known["allow"] = tuple(known.get("allow", ()))
        return cls(**known)
