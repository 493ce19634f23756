"""What daemons say over HTTP: hello, pull, done, a warm machine's `whose`; and the launcher's `refused`
(docs/protocols.md §2, §3)."""

import hmac
import json
import re
from typing import Annotated, Any, Literal, TypeVar

from nodus_core.access.tokens import bearer
from nodus_core.aws.http_events import body_of, headers_of
from nodus_core.journal.sandboxes import Greeting
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import ask_place, digest
from nodus_core.kernel.sandboxes import Used
from nodus_core.sandboxes.frames import ask_frame, command_frame
from nodus_core.sandboxes.link import Link
from nodus_core.sandboxes.warm_machines import WarmMachines
from pydantic import BaseModel, ConfigDict, Field, ValidationError

Word = Annotated[str, Field(min_length=1, max_length=200)]

SANDBOX = re.compile(r"[\w.-]{1,200}", re.ASCII)

SANDBOXES, WARM = "/link/v1/sandboxes/", "/link/v1/warm/"
"""Where the paths begin: of sandboxes, and of machines that are nobody's yet."""

MOST_RESULT_BYTES = 5 * 1024 * 1024
MOST_ABOUT = 10_000
MOST_HAD = 10_000
"""Commands that a daemon may say it works on."""


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


T = TypeVar("T", bound=_Said)


class Isolation(_Said):
    isolated: bool = False
    guard: Literal["network", "seccomp"] | None = None
    optIn: bool = False
    missing: list[str] = Field(default_factory=list[str])


class Hello(_Said):
    boot: Word
    tokenHash: str = Field(pattern="^[0-9a-f]{64}$")
    enrolCode: str | None = Field(default=None, max_length=200)
    version: str = Field(default="", max_length=100)
    isolation: Isolation = Field(default_factory=Isolation)
    limits: dict[str, Any] = Field(default_factory=dict[str, Any])


Amount = Annotated[int, Field(ge=0, le=2**53)]


class Usage(_Said):
    cpuSeconds: Amount
    memoryBytes: Amount
    diskBytes: Amount
    diskSizeBytes: Amount


class Pull(_Said):
    boot: Word
    have: list[Word] = Field(default_factory=list[str], max_length=MOST_HAD)
    usage: Usage | None = None


class Done(_Said):
    boot: Word
    id: Word
    result: dict[str, Any]


class Refused(_Said):
    enrolCode: Word
    reason: str = Field(max_length=4000)
    remedy: str = Field(default="", max_length=4000)


class Whose(_Said):
    tokenHash: str = Field(pattern="^[0-9a-f]{64}$")
    enrolCode: str = Field(min_length=1, max_length=200)
    enrolHash: str = Field(pattern="^[0-9a-f]{64}$")


def hear(link: Link, event: dict[str, Any]) -> str:
    """The JSON answer to one call. Raises `Refusal`."""
    name, verb = addressed(event)
    sandbox, body = sandbox_name(name), _body(event)
    if _is_warm(event):
        if verb != "whose":
            raise Refusal("NotFound", f"a warm machine has no {verb!r}: whose")
        return _whose(link, sandbox, token_of(event), _read(Whose, body))
    match verb:
        case "hello":
            return _hello(link, sandbox, token_of(event), _read(Hello, body))
        case "refused":
            said = _read(Refused, body)
            link.refused(sandbox, said.enrolCode, f"{said.reason} {said.remedy}".strip())
            return to_json({"state": "gone"})
        case "pull":
            return _pull(link, sandbox, token_of(event), _read(Pull, body))
        case "done":
            return _done(link, sandbox, token_of(event), _read(Done, body))
        case _:
            raise Refusal("NotFound", f"the link has no {verb!r}: hello, pull, done, refused")


def addressed(event: dict[str, Any]) -> tuple[str, str]:
    """The sandbox and the verb of a call's path, whatever they are."""
    _, _, rest = str(event.get("rawPath", "")).partition(WARM if _is_warm(event) else SANDBOXES)
    name, _, verb = rest.partition("/")
    return name, verb


def _is_warm(event: dict[str, Any]) -> bool:
    return str(event.get("rawPath", "")).startswith(WARM)


def sandbox_name(text: str) -> str:
    """The name of a sandbox as a daemon gives it. Raises `Refusal` for what no sandbox is called."""
    if not SANDBOX.fullmatch(text):
        raise Refusal("Unauthorized", "no sandbox has such a name")
    return text


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def token_of(event: dict[str, Any]) -> str:
    """The token of a call or connection; empty when it carries none."""
    return bearer(headers_of(event).get("authorization")) or ""


def _hello(link: Link, sandbox: str, token: str, said: Hello) -> str:
    _check_token(token, said.tokenHash)
    about = to_json({"version": said.version, "limits": said.limits, "missing": said.isolation.missing})
    if len(about) > MOST_ABOUT:
        raise Refusal("BadRequest", f"what a daemon says of itself has at most {MOST_ABOUT} characters")
    own = said.isolation
    greeting = Greeting(said.boot, said.tokenHash, own.isolated, own.guard, own.optIn, about)
    secrets = link.hello(sandbox, greeting, said.enrolCode)
    return to_json({"state": "running", **({"secrets": dict(secrets)} if secrets else {})})


def _whose(link: Link, machine: str, token: str, said: Whose) -> str:
    _check_token(token, said.tokenHash)
    sandbox = WarmMachines(link.journal).whose(machine, said.tokenHash, said.enrolCode, said.enrolHash)
    return to_json({"sandbox": sandbox})


def _check_token(token: str, token_hash: str) -> None:
    if not hmac.compare_digest(digest(token), token_hash):
        raise Refusal("Unauthorized", "tokenHash is not that of the bearer token")


def _pull(link: Link, sandbox: str, token: str, said: Pull) -> str:
    speaker = link.authorize(sandbox, token)
    if said.usage is not None:
        use, now = said.usage, link.clock.now()
        link.uses(speaker, Used(now, use.cpuSeconds, use.memoryBytes, use.diskBytes, use.diskSizeBytes))
    pulled = link.pull(speaker, said.boot, frozenset(said.have))
    frames = [command_frame(command, json.loads(request)) for command, request in pulled.commands]
    asks = [ask_frame(ask) for ask in pulled.asks]
    flags = {"stop": pulled.stop, "more": pulled.more}
    return to_json({"commands": frames, "asks": asks, "cancel": pulled.cancel, **flags})


def _done(link: Link, sandbox: str, token: str, said: Done) -> str:
    result = to_json(said.result)
    if len(result.encode(errors="replace")) > MOST_RESULT_BYTES:
        raise Refusal("BadRequest", f"a result has at most {MOST_RESULT_BYTES} bytes")
    speaker = link.authorize(sandbox, token)
    if ask_place(said.id) is None:
        link.done(speaker, said.boot, said.id, result)
    else:
        link.answered(speaker, said.id, result)
    return to_json({"state": "done"})


def _body(event: dict[str, Any]) -> str:
    return body_of(event).decode(errors="replace")


def _read(model: type[T], body: str) -> T:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, item["loc"])) or "body" for item in error.errors())
        raise Refusal("BadRequest", f"not understood: {fields}") from None
