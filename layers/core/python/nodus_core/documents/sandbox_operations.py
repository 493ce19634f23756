"""The calls about sandboxes: commands, terminals, previews, files, images, inference."""

from collections.abc import Iterator

from nodus_core.documents.calls import (
    ALWAYS,
    BASE,
    CONTINUE,
    LIMIT,
    ONE,
    ORGANIZATION,
    PROJECT,
    REFUSAL,
    Answer,
    Operation,
    Parameter,
    Paths,
)
from nodus_core.documents.sandbox_schemas import IMAGE_CHOICES, INFERENCE, PREVIEW
from nodus_core.documents.schemas import name_of
from nodus_core.resources.kinds import BY_NAME
from nodus_core.resources.media_types import BYTES, JSON, TEXT

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


def below_sandboxes() -> Iterator[Operation]:
    """What stands below a Sandbox."""
    paths, shown = Paths(BY_NAME["Sandbox"]), name_of("Sandbox")
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
    given, body = {201: Answer("Where the service is seen.", PREVIEW)}, {JSON: name_of("SandboxPreview")}
    yield paths.call("POST", f"{ONE}/previews", "connect", "Show a web service of a sandbox", given, (), body)


def _terminals(paths: Paths) -> Iterator[Operation]:
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
    paths, shown = Paths(BY_NAME["EnvironmentImage"]), name_of("EnvironmentImage")
    built = {200: Answer("What it stands for now.", shown)}
    yield paths.call("POST", f"{ONE}/build", "connect", "Find out anew what an image stands for", built)
    refused = (400, 401, 403, 404, *ALWAYS)
    yield Operation(
        method="GET",
        path=f"{BASE}/namespaces/{{namespace}}/imagechoices",
        id="listNamespacedImageChoice",
        summary="List what sandboxes can be made of",
        action="list",
        kind="EnvironmentImage",
        plural="environmentimages",
        parameters=(PROJECT, ORGANIZATION),
        answers={200: Answer("The images.", IMAGE_CHOICES), **dict.fromkeys(refused, REFUSAL)},
    )


def files_of_sandboxes() -> Iterator[Operation]:
    """The files of a running Sandbox."""
    paths, files, file = Paths(BY_NAME["Sandbox"]), f"{ONE}/files", name_of("SandboxFile")
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
