"""Every call of the API as data: what the documents say of it, and what the routes must be."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nodus_core.documents.schemas import name_of
from nodus_core.documents.shared import IMAGE_CHOICES, INFERENCE, LOGIN_ANSWER, STATUS, Schema
from nodus_core.resources.fields import LONGEST_LABEL, LONGEST_NAME
from nodus_core.resources.kinds import API_VERSION, BY_NAME, KINDS, Kind
from nodus_core.resources.media_types import APPLY, BYTES, JSON, MERGE, TEXT

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
COMMAND = Parameter(
    "command", "path", "Id of the command.", {"type": "string", "maxLength": 64}, required=True
)
PATH = Parameter(
    "path",
    "query",
    "Path in the sandbox; a relative one counts from its working folder.",
    {"type": "string", "minLength": 1, "maxLength": 4096},
    required=True,
)
LISTED = Parameter(
    "list",
    "query",
    "Tell what there is, and not what stands in it; a file is the one entry of its list.",
    {"type": "boolean"},
)
MODEL = Parameter("model", "query", "Id or alias of a model of the catalogue; left out: the first one.")
TERMINAL = Parameter(
    "terminal", "path", "Id of the terminal.", {"type": "string", "maxLength": 64}, required=True
)
OFFSET = Parameter(
    "offset",
    "query",
    "Tell what stands behind so many characters of the output, its streams apart.",
    {"type": "integer", "minimum": 0},
)
WAIT = Parameter(
    "timeoutSeconds",
    "query",
    "With offset: how long to wait where there is nothing yet, at most 8.",
    {"type": "integer", "minimum": 0},
)
MODE = Parameter("mode", "query", "Permission bits in octal digits; left out: the file's own, or 0644.")
PARENTS = Parameter("parents", "query", "Make the folders above it.", {"type": "boolean"})
RECURSIVE = Parameter("recursive", "query", "A folder goes with what is in it.", {"type": "boolean"})
UPLOAD = Parameter("upload", "query", "Id of the upload that is its content; without a body then.")
RANGE = Parameter("Range", "header", "One part of the file, as bytes=FIRST-LAST.")
MATCH = Parameter("If-Match", "header", "The versions (ETag) that are meant, or *: another one is 412.")
NONE_MATCH = Parameter("If-None-Match", "header", "*: there must be no such file.")
OTHER_THAN = Parameter("If-None-Match", "header", "Versions that need not be sent again.")
ASK_KEY = Parameter(
    "Idempotency-Key",
    "header",
    "The same key again makes the same change once, as long as the machine lives.",
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
_LISTING = (LIMIT, CONTINUE, FIELDS, LABELS)
_READING = (*_LISTING, WATCH, POSITION, WINDOW, BOOKMARKS)
_WRITING = (DRY_RUN, MANAGER, VALIDATION)
_OF_BODIES = (413, 415, 422)
_ALWAYS = (429, 500, 503)
_REFUSAL = Answer("A refusal: what happened, to which object, and what to do.", STATUS)


def operations() -> Iterator[Operation]:
    """Every call but those that read what the API says of itself."""
    for kind in KINDS:
        yield from of_kind(kind)
    yield from below_runs()
    yield from below_sandboxes()
    yield from of_images()
    yield from files_of_sandboxes()
    yield log_in()


def of_kind(kind: Kind) -> Iterator[Operation]:
    """The calls that a kind has."""
    paths, own = _Paths(kind), name_of(kind.name)
    one = f"{'an' if kind.name[0] in 'AEIOU' else 'a'} {kind.name}"
    shown, new = Answer("The object.", own), Answer("The new object.", own)
    page = Answer("A page, or changes where they are watched.", name_of(kind.list_name))
    gone = {200: Answer("It is gone.", STATUS), 202: Answer("It is going.", own)}
    body, patch = {JSON: own}, {APPLY: own, MERGE: own}
    yield paths.call("GET", "", "list", f"List or watch {kind.plural}", {200: page}, _READING)
    if kind.namespaced:
        yield paths.everywhere(page)
    yield paths.call("GET", ONE, "get", f"Read {one}", {200: shown})
    yield paths.call("PUT", ONE, "put", f"Replace {one}", {200: shown}, _WRITING, body)
    yield paths.call(
        "PATCH",
        ONE,
        "patch",
        f"Apply or change {one}",
        {200: shown, 201: new},
        (*_WRITING, FORCE),
        patch,
    )
    if kind.is_made_here:
        yield paths.call("POST", "", "post", f"Create {one}", {200: shown, 201: new}, (*_WRITING, KEY), body)
        yield paths.call("DELETE", ONE, "delete", f"Delete {one}", gone, (DRY_RUN,))


def below_runs() -> Iterator[Operation]:
    """What stands below a run."""
    paths = _Paths(BY_NAME["AgentRun"])
    shown, heard = name_of("AgentRun"), name_of("MessageReceipt")
    taken = {200: Answer("As it is.", shown), 202: Answer("It is taken.", shown)}
    accepted = {200: Answer("It was accepted before.", heard), 202: Answer("Accepted.", heard)}
    steps = {200: Answer("A page of steps.", name_of("StepList"))}
    answer = {
        200: Answer("The whole answer.", None, TEXT),
        307: Answer("It is large: read it at Location, without the credential."),
    }
    yield paths.call("POST", f"{ONE}/cancel", "connect", "Cancel a run", taken)
    yield paths.call(
        "POST",
        f"{ONE}/messages",
        "connect",
        "Send a run its next prompt",
        accepted,
        (),
        {JSON: name_of("Message")},
    )
    yield paths.call(
        "POST",
        f"{ONE}/resolution",
        "connect",
        "Say what became of a step",
        taken,
        (),
        {JSON: name_of("Stated")},
    )
    yield paths.call("GET", f"{ONE}/steps", "connect", "List what a run did", steps, (LIMIT, CONTINUE))
    team = {200: Answer("The team view.", name_of("Team"))}
    yield paths.call("GET", f"{ONE}/team", "connect", "See how a run and its subagents stand", team)
    yield paths.call("GET", f"{ONE}/answer", "connect", "Read a run's answer", answer)


def log_in() -> Operation:
    """The call of whoever has no credential yet."""
    refused = (400, 401, 403, 409, *_OF_BODIES, *_ALWAYS)
    return Operation(
        method="POST",
        path=f"{BASE}/logins",
        id="createLogin",
        summary="Get a key for some hours by an AWS identity",
        action="post",
        kind="Login",
        plural="logins",
        parameters=(ORGANIZATION,),
        bodies={JSON: name_of("Login")},
        answers={201: Answer("The key.", LOGIN_ANSWER), **dict.fromkeys(refused, _REFUSAL)},
        is_open=True,
    )


def below_sandboxes() -> Iterator[Operation]:
    """What stands below a Sandbox."""
    paths, shown = _Paths(BY_NAME["Sandbox"]), name_of("Sandbox")
    taken = {200: Answer("As it is.", shown), 202: Answer("It is taken.", shown)}
    yield paths.call("POST", f"{ONE}/start", "connect", "Start a sandbox's machine", taken)
    yield paths.call("POST", f"{ONE}/stop", "connect", "Stop a sandbox's machine", taken)
    view, below = name_of("SandboxCommandView"), f"{ONE}/commands"
    placed = {200: Answer("It was placed before.", view), 202: Answer("It is placed.", view)}
    page = {200: Answer("A page of commands, the newest first.", name_of("SandboxCommandList"))}
    body = {JSON: name_of("SandboxCommand")}
    yield paths.call("POST", below, "connect", "Run a command in a sandbox", placed, (), body)
    yield paths.call("GET", below, "connect", "List a sandbox's commands", page, (LIMIT, CONTINUE))
    one, shown_one = (COMMAND,), {200: Answer("The command.", view)}
    yield paths.call("GET", f"{below}/{{command}}", "connect", "Read a command", shown_one, one)
    output = {200: Answer("What it has put out; with offset a SandboxCommandOutput.", None, TEXT)}
    how = (COMMAND, OFFSET, WAIT)
    yield paths.call("GET", f"{below}/{{command}}/output", "connect", "Read a command's output", output, how)
    told = {200: Answer("A model, its rates, and texts to use it by.", INFERENCE)}
    yield paths.call(
        "GET", f"{ONE}/inference", "connect", "Read how code in a sandbox uses a model", told, (MODEL,)
    )
    ended = {200: Answer("It had ended.", view), 202: Answer("It is being ended.", view)}
    yield paths.call("POST", f"{below}/{{command}}/cancel", "connect", "End a command", ended, one)
    yield from _terminals(paths)


def _terminals(paths: "_Paths") -> Iterator[Operation]:
    view, below, one = name_of("SandboxTerminalView"), f"{ONE}/terminals", (TERMINAL,)
    opened = {200: Answer("It was opened before.", view), 202: Answer("It is being opened.", view)}
    body = {JSON: name_of("SandboxTerminal")}
    yield paths.call("POST", below, "connect", "Open a terminal in a sandbox", opened, (), body)
    there = {200: Answer("The open terminals.", name_of("SandboxTerminalList"))}
    yield paths.call("GET", below, "connect", "List a sandbox's open terminals", there)
    shown = {200: Answer("The terminal.", view)}
    yield paths.call("GET", f"{below}/{{terminal}}", "connect", "Read a terminal", shown, one)
    attach = {200: Answer("The terminal, with a ticket.", view)}
    yield paths.call("POST", f"{below}/{{terminal}}/attach", "connect", "Connect to a terminal", attach, one)
    ended = {200: Answer("It had ended.", view), 202: Answer("It is being ended.", view)}
    yield paths.call("POST", f"{below}/{{terminal}}/close", "connect", "End a terminal", ended, one)


def of_images() -> Iterator[Operation]:
    """What there is of images beside the project's objects."""
    paths, shown = _Paths(BY_NAME["EnvironmentImage"]), name_of("EnvironmentImage")
    built = {200: Answer("What it stands for now.", shown)}
    yield paths.call("POST", f"{ONE}/build", "connect", "Find out anew what an image stands for", built)
    refused = (400, 401, 403, 404, *_ALWAYS)
    yield Operation(
        method="GET",
        path=f"{BASE}/namespaces/{{namespace}}/imagechoices",
        id="listNamespacedImageChoice",
        summary="List what sandboxes can be made of",
        action="list",
        kind="EnvironmentImage",
        plural="environmentimages",
        parameters=(PROJECT, ORGANIZATION),
        answers={200: Answer("The images.", IMAGE_CHOICES), **dict.fromkeys(refused, _REFUSAL)},
    )


def files_of_sandboxes() -> Iterator[Operation]:
    """The files of a running Sandbox."""
    paths, files, file = _Paths(BY_NAME["Sandbox"]), f"{ONE}/files", name_of("SandboxFile")
    read = {
        200: Answer("The bytes of a file; with list=true a SandboxFileList.", None, BYTES),
        206: Answer("The part that Range asks for.", None, BYTES),
        304: Answer("The version is one of If-None-Match."),
        307: Answer("It is large: read it at Location, without the credential."),
        416: Answer("The file ends before the part."),
    }
    looked = (PATH, LISTED, LIMIT, CONTINUE, RANGE, MATCH, OTHER_THAN)
    yield paths.call("GET", files, "connect", "Read a file of a sandbox, or list a folder", read, looked)
    saved = {200: Answer("It was replaced.", file), 201: Answer("It is new.", file)}
    how = (PATH, MODE, PARENTS, UPLOAD, MATCH, NONE_MATCH, ASK_KEY)
    yield paths.call(
        "PUT", files, "connect", "Save a file of a sandbox", saved, how, {BYTES: name_of("FileContent")}
    )
    gone = {200: Answer("It is gone.", name_of("SandboxFileRemoval"))}
    how = (PATH, RECURSIVE, MATCH, ASK_KEY)
    yield paths.call("DELETE", files, "connect", "Remove a file or folder of a sandbox", gone, how)
    uploads, moves = {JSON: name_of("FileUpload")}, {JSON: name_of("FileMove")}
    announced = {201: Answer("Where the content is to be put.", name_of("SandboxFileUpload"))}
    yield paths.call("POST", f"{files}/uploads", "connect", "Announce a large file", announced, (), uploads)
    moved = {200: Answer("It is moved.", file)}
    yield paths.call(
        "POST", f"{files}/moves", "connect", "Move a file or folder", moved, (MATCH, ASK_KEY), moves
    )
    made = {200: Answer("It is there.", name_of("SandboxFolder"))}
    folder = {JSON: name_of("NewFolder")}
    yield paths.call("POST", f"{files}/folders", "connect", "Make a folder", made, (), folder)


@dataclass(frozen=True)
class _Paths:
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
            answers={**answers, **dict.fromkeys(_refused(method, tail), _REFUSAL)},
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
            parameters=(ORGANIZATION, *_LISTING),
            answers={200: page, **dict.fromkeys(_refused("GET", ""), _REFUSAL)},
        )


def _refused(method: str, tail: str) -> tuple[int, ...]:
    """The codes of refusals that a call may get; docs/errors.md says for what."""
    body = _OF_BODIES if method in ("POST", "PUT", "PATCH") else ()
    other = (412,) if "/files" in tail else ()
    stale = (409,) if method != "GET" or tail.endswith(("/answer", "/output", "/files")) else ()
    gone = (410,) if method == "GET" else ()
    return (400, 401, 403, 404, *stale, *gone, *other, *body, *_ALWAYS)
