"""What a call of the API is, as data, and what calls have in common."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodus_core.documents.parts import STATUS, Schema
from nodus_core.resources.fields import LONGEST_LABEL, LONGEST_NAME
from nodus_core.resources.kinds import API_VERSION, Kind
from nodus_core.resources.media_types import JSON

BASE = f"/apis/{API_VERSION}"

Where = Literal["path", "query", "header"]


@dataclass(frozen=True)
class Parameter:
    """Something that a call takes beside its body."""

    name: str
    where: Where
    description: str
    schema: Schema = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True)
class Answer:
    """What comes back with a code: the name of a schema and its media type, or nothing."""

    description: str
    schema: str | None = None
    media: str = JSON


@dataclass(frozen=True)
class Operation:
    """One call. `action` is Kubernetes' word for it; `bodies` names a schema for each media type that is taken.

    `kind` is what the call is about by its name on the wire, `plural` the same by its word in the path: of a kind of
    objects, or a Login, which is none. `is_open`: it needs no credential.
    """

    method: str
    path: str
    id: str
    summary: str
    action: str
    kind: str
    plural: str
    parameters: tuple[Parameter, ...] = ()
    bodies: Mapping[str, str] = field(default_factory=dict[str, str])
    answers: Mapping[int, Answer] = field(default_factory=dict[int, Answer])
    is_open: bool = False


PROJECT = Parameter(
    "namespace", "path", "The project.", {"type": "string", "maxLength": LONGEST_LABEL}, required=True
)
NAME = Parameter(
    "name", "path", "Name of the object.", {"type": "string", "maxLength": LONGEST_NAME}, required=True
)
LIMIT = Parameter(
    "limit", "query", "How many at most (100 if left out).", {"type": "integer", "minimum": 1, "maximum": 500}
)
CONTINUE = Parameter("continue", "query", "Where to go on: metadata.continue of the page before.")
FIELDS = Parameter("fieldSelector", "query", "FIELD=VALUE or FIELD!=VALUE, joined by commas.")
LABELS = Parameter(
    "labelSelector", "query", "Which labels they have: key=value, key!=value, key in (a,b), key, !key."
)
WATCH = Parameter("watch", "query", "Tell of changes instead.", {"type": "boolean"})
POSITION = Parameter(
    "resourceVersion", "query", "Where a watch begins: metadata.resourceVersion of a list or event."
)
WINDOW = Parameter(
    "timeoutSeconds", "query", "How long a watch waits for a change.", {"type": "integer", "minimum": 0}
)
BOOKMARKS = Parameter("allowWatchBookmarks", "query", "End a watch with its position.", {"type": "boolean"})
DRY_RUN = Parameter(
    "dryRun", "query", "All: check everything, store nothing.", {"type": "string", "enum": ["All"]}
)
MANAGER = Parameter("fieldManager", "query", "Who changes it; not kept.")
VALIDATION = Parameter(
    "fieldValidation",
    "query",
    "Fields are always checked strictly.",
    {"type": "string", "enum": ["Ignore", "Warn", "Strict"]},
)
FORCE = Parameter(
    "force", "query", "Of an apply; nothing is ever owned by another manager.", {"type": "boolean"}
)
KEY = Parameter(
    "Idempotency-Key",
    "header",
    "The same key and meaning again gives the first outcome; 1 to 255 visible ASCII characters.",
    {"type": "string", "minLength": 1, "maxLength": 255},
)
ORGANIZATION = Parameter(
    "Nodus-Org", "header", "The key's organization, to be sure of it; another one is refused."
)

ONE = "/{name}"
"""One object, below the path of its kind."""

_VERBS = {
    "list": "list",
    "get": "read",
    "post": "create",
    "put": "replace",
    "patch": "patch",
    "delete": "delete",
}
LISTING = (LIMIT, CONTINUE, FIELDS, LABELS)
READING = (*LISTING, WATCH, POSITION, WINDOW, BOOKMARKS)
WRITING = (DRY_RUN, MANAGER, VALIDATION)
OF_BODIES = (413, 415, 422)
ALWAYS = (429, 500, 503)
REFUSAL = Answer("A refusal: what happened, to which object, and what to do.", STATUS)


@dataclass(frozen=True)
class Paths:
    """The calls at and below the path of a kind."""

    kind: Kind

    def call(  # noqa: PLR0917 - the columns of a table, in their order
        self,
        method: str,
        tail: str,
        action: str,
        summary: str,
        answers: Mapping[int, Answer],
        parameters: tuple[Parameter, ...] = (),
        bodies: Mapping[str, str] | None = None,
    ) -> Operation:
        """One call; what all have in common is added."""
        kind, of_project = self.kind, self.kind.namespaced
        place = f"{BASE}/namespaces/{{namespace}}" if of_project else BASE
        verb = _VERBS.get(action, method.lower())
        below = "".join(word.strip("{}").capitalize() for word in tail.removeprefix(ONE).split("/"))
        common = (*((PROJECT,) if of_project else ()), *((NAME,) if ONE in tail else ()), ORGANIZATION)
        return Operation(
            method=method,
            path=f"{place}/{kind.plural}{tail}",
            id=f"{verb}{'Namespaced' if of_project else ''}{kind.name}{below}",
            summary=summary,
            action=action,
            kind=kind.name,
            plural=kind.plural,
            parameters=(*common, *parameters),
            bodies=bodies or {},
            answers={**answers, **dict.fromkeys(refused_by(method, tail), REFUSAL)},
        )

    def everywhere(self, page: Answer) -> Operation:
        """The list through all projects of the key."""
        kind = self.kind
        return Operation(
            method="GET",
            path=f"{BASE}/{kind.plural}",
            id=f"list{kind.name}ForAllNamespaces",
            summary=f"List {kind.plural} of all projects that the key may use",
            action="list",
            kind=kind.name,
            plural=kind.plural,
            parameters=(ORGANIZATION, *LISTING),
            answers={200: page, **dict.fromkeys(refused_by("GET", ""), REFUSAL)},
        )


def refused_by(method: str, tail: str) -> tuple[int, ...]:
    """The codes of refusals that a call may get; docs/errors.md says for what."""
    body = OF_BODIES if method in ("POST", "PUT", "PATCH") else ()
    other = (412,) if "/files" in tail else ()
    stale = (409,) if method != "GET" or tail.endswith(("/answer", "/output", "/files")) else ()
    gone = (410,) if method == "GET" else ()
    return (400, 401, 403, 404, *stale, *gone, *other, *body, *ALWAYS)
