"""Schemas that no model of ours checks: those of Kubernetes, and what the server only answers."""

from typing import Any

Schema = dict[str, Any]

PREFIX = "dev.nodus.v1"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{META}.ObjectMeta"
LIST_META = f"{META}.ListMeta"
STATUS = f"{META}.Status"
RECEIPT = f"{PREFIX}.MessageReceipt"
STEP = f"{PREFIX}.Step"
TEAM = f"{PREFIX}.Team"
STEPS = f"{PREFIX}.StepList"
COMMAND = f"{PREFIX}.SandboxCommandView"
COMMANDS = f"{PREFIX}.SandboxCommandList"
FILES = f"{PREFIX}.SandboxFileList"
IMAGE_CHOICES = f"{PREFIX}.ImageChoiceList"
INFERENCE = f"{PREFIX}.SandboxInference"
FILE = f"{PREFIX}.SandboxFile"
FILE_CONTENT = f"{PREFIX}.FileContent"
FILE_REMOVAL = f"{PREFIX}.SandboxFileRemoval"
FILE_UPLOAD = f"{PREFIX}.SandboxFileUpload"
FOLDER = f"{PREFIX}.SandboxFolder"
TERMINAL = f"{PREFIX}.SandboxTerminalView"
TERMINALS = f"{PREFIX}.SandboxTerminalList"
LOGIN_ANSWER = f"{PREFIX}.LoginAnswer"


def text(description: str, **more: Any) -> Schema:
    """A text."""
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> Schema:
    """A whole number."""
    return {"type": "integer", "description": description, **more}


def moment(description: str) -> Schema:
    """A moment in UTC."""
    return text(description, format="date-time")


def _texts(description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}


def _list(description: str) -> Schema:
    return {"type": "array", "description": description, "items": {"type": "string"}}


def _fields(description: str, properties: Schema, *required: str, **more: Any) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "description": description, "properties": properties, **needed, **more}


def _versioned(version: str, kind: str) -> Schema:
    return {
        "apiVersion": text("Version of the schema.", enum=[version]),
        "kind": text("The kind.", enum=[kind]),
    }


_NOTHING: Schema = {"type": "object", "description": "Holds nothing."}
_OPEN = {"x-kubernetes-preserve-unknown-fields": True}

_OBJECT_META = _fields(
    "Metadata of an object.",
    {
        "name": text("Unique for its kind in its project."),
        "generateName": text("Beginning of a name that the server completes, where name is left out."),
        "namespace": text("The project."),
        "uid": text("The object's own id: another one of the same name has another."),
        "resourceVersion": text("Version of this object; grows with every change."),
        "generation": whole("How often the spec was written.", format="int64"),
        "creationTimestamp": moment("When it was made."),
        "deletionTimestamp": moment("When its deletion was asked for; it goes when its finalizers have."),
        "labels": _texts("Words by which objects are selected."),
        "annotations": _texts("Notes of tools and people."),
        "finalizers": _list("What is still to be cleaned up before the object is gone."),
    },
    **_OPEN,
)

_LIST_META = _fields(
    "Metadata of a list.",
    {
        "resourceVersion": text("A position from which the list can be watched."),
        "continue": text("Where the next page begins; absent on the last one."),
    },
)

_CAUSE = _fields(
    "One thing that is wrong.",
    {
        "reason": text("One word for programs."),
        "message": text("What is wrong, and what to do."),
        "field": text("The field."),
    },
)

_STATUS = _fields(
    "What became of a call that gives no object.",
    {
        **_versioned("v1", "Status"),
        "metadata": _NOTHING,
        "status": text("How it went.", enum=["Success", "Failure"]),
        "reason": text("One word for programs."),
        "message": text("What happened, to which object, and what to do."),
        "code": whole("The HTTP status.", format="int32"),
        "details": _fields(
            "What it is about.",
            {
                "name": text("The object."),
                "kind": text("Its kind."),
                "uid": text("Its id."),
                "retryAfterSeconds": whole("When to try again.", format="int32"),
                "causes": {"type": "array", "items": _CAUSE, "description": "Everything that is wrong."},
            },
            **_OPEN,
        ),
    },
    "apiVersion",
    "kind",
    "status",
    **{"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Status"}]},
)

_USAGE = _fields(
    "Tokens of model calls.",
    {"inputTokens": whole("Read by the model."), "outputTokens": whole("Written by it.")},
)

_STEP = _fields(
    "One thing that a run did.",
    {
        "index": whole("Its place."),
        "name": text("Its name within the run."),
        "kind": text("What kind of work it is."),
        "state": text("How it stands.", enum=["Running", "Completed", "Failed", "Cancelled", "Uncertain"]),
        "guarantee": text(
            "What holds when its worker dies.", enum=["ExactlyOnce", "AtLeastOnce", "AtMostOnce"]
        ),
        "startedAt": moment("When it began."),
        "finishedAt": moment("When it ended."),
        "costUSD": text("What it cost, in US dollars."),
        "costBasis": text(
            "`Reserve`: its provider did not say what it used, and the most that it could cost was booked.",
            enum=["Reserve"],
        ),
        "usage": _USAGE,
        "input": text("The beginning of what it was given: of a command, its line."),
        "preview": text("The beginning of what came out."),
    },
    "index",
    "name",
    "kind",
    "state",
    **_OPEN,
)

_STATUS_OF_COMMAND: Schema = {
    "state": text(
        "How it stands.",
        enum=[*("Pending", "Running", "Exited", "TimedOut", "Cancelled", "OutOfMemory", "Failed"), "Lost"],
    ),
    "exitCode": whole("Its exit code, if it ended by itself."),
    "startedAt": moment("When the sandbox took it."),
    "finishedAt": moment("When it ended."),
}

_TERMINAL = _fields(
    "A terminal in a sandbox, as it stands.",
    {
        **_versioned("nodus.dev/v1", "SandboxTerminal"),
        "metadata": {"allOf": [{"$ref": OBJECT_META}], "description": "What every object has."},
        "spec": _fields(
            "What was asked for.",
            {
                "command": text("Shell command line; absent: an interactive shell."),
                "workingDir": text("Folder it began in."),
                "columns": whole("Width that it began with."),
                "rows": whole("Height that it began with."),
                "term": text("Type of the terminal."),
            },
        ),
        "status": _fields(
            "What became of it.",
            {
                **_STATUS_OF_COMMAND,
                "connect": _fields(
                    "Where to connect to, once, by WebSocket.",
                    {
                        "url": text("The address, with a ticket; whoever has it is let in."),
                        "expiresAt": moment("Until when."),
                    },
                ),
            },
        ),
    },
)

_COMMAND = _fields(
    "A command in a sandbox, as it stands.",
    {
        **_versioned("nodus.dev/v1", "SandboxCommand"),
        "metadata": {"allOf": [{"$ref": OBJECT_META}], "description": "What every object has."},
        "spec": _fields(
            "What was asked for.",
            {
                "command": text("Shell command line."),
                "workingDir": text("Folder it runs in."),
                "timeout": text("After how much time it is ended."),
            },
        ),
        "status": _fields(
            "What became of it.",
            _STATUS_OF_COMMAND,
        ),
    },
    "metadata",
    "spec",
    "status",
)

SHARED: dict[str, Schema] = {
    OBJECT_META: _OBJECT_META,
    LIST_META: _LIST_META,
    STATUS: _STATUS,
    RECEIPT: _fields(
        "An accepted message.",
        {
            **_versioned("nodus.dev/v1", "Message"),
            "agentRun": text("The run."),
            "messageKey": text("The message's key."),
            "turn": whole("The turn that it gets."),
            "acceptedAt": moment("When it was accepted."),
        },
        "agentRun",
        "messageKey",
        "turn",
        "acceptedAt",
    ),
    STEP: _STEP,
    TEAM: _fields(
        "How a run and its subagents stand.",
        {
            **_versioned("nodus.dev/v1", "Team"),
            "metadata": _NOTHING,
            "summary": _fields(
                "The run itself.",
                {
                    "state": text("The run's phase."),
                    "message": text("How it stands, in words."),
                    "action": text(
                        "What a person can do next.",
                        enum=["None", "ViewAnswer", "SendMessage", "ManageTasks", "InspectRun"],
                    ),
                    "counts": {
                        "type": "object",
                        "description": "How many subagents there are, by how they stand.",
                        "additionalProperties": {"type": "integer"},
                    },
                    "peakParallelModelCalls": whole("Most model calls at one time."),
                },
                "state",
                "message",
                "action",
                "counts",
            ),
            "items": {
                "type": "array",
                "description": "The subagents.",
                "items": {"type": "object", **_OPEN},
            },
            "verification": _fields("What was checked.", {"state": text("How the check stands.")}, **_OPEN),
        },
        "summary",
        "items",
        "verification",
    ),
    COMMAND: _COMMAND,
    COMMANDS: _fields(
        "A page of a sandbox's commands, the newest first.",
        {
            **_versioned("nodus.dev/v1", "SandboxCommandList"),
            "metadata": {"allOf": [{"$ref": LIST_META}], "description": "What every list has."},
            "items": {"type": "array", "items": {"$ref": COMMAND}, "description": "The commands."},
        },
        "items",
    ),
    FILE_CONTENT: text("The bytes of a file.", format="binary"),
    FILE: _fields(
        "A file that was saved or moved.",
        {
            **_versioned("nodus.dev/v1", "SandboxFile"),
            "path": text("Its path."),
            "size": whole("Bytes."),
            "etag": text("Its version."),
        },
        "path",
    ),
    FILE_REMOVAL: _fields(
        "What was removed.",
        {**_versioned("nodus.dev/v1", "SandboxFileRemoval"), "path": text("Its path.")},
        "path",
    ),
    FILE_UPLOAD: _fields(
        "Where a content is to be put, within 15 minutes.",
        {
            **_versioned("nodus.dev/v1", "SandboxFileUpload"),
            "id": text("What to save the file with (upload)."),
            "method": text("How to send it.", enum=["PUT"]),
            "url": text("Where to; without the credential."),
            "headers": _texts("What to send with it."),
        },
        "id",
        "method",
        "url",
        "headers",
    ),
    FOLDER: _fields(
        "A folder that is there.",
        {**_versioned("nodus.dev/v1", "SandboxFolder"), "path": text("Its path.")},
        "path",
    ),
    FILES: _fields(
        "A page of a folder in a sandbox, by name.",
        {
            **_versioned("nodus.dev/v1", "SandboxFileList"),
            "metadata": {"allOf": [{"$ref": LIST_META}], "description": "What every list has."},
            "items": {
                "type": "array",
                "description": "What stands in the folder.",
                "items": _fields(
                    "A file, a folder, a link or something else.",
                    {
                        "name": text("Its name."),
                        "nameIsNotText": {
                            "type": "boolean",
                            "description": "Its name is no UTF-8, and shown with U+FFFD: only commands can reach it.",
                        },
                        "type": text("What it is.", enum=["File", "Folder", "Link", "Other"]),
                        "size": whole("Bytes."),
                        "mode": text("Permission bits, in octal digits."),
                        "modifiedAt": moment("When it was written last."),
                        "target": text("Of a link: where it leads."),
                        "etag": text("Of a file: its version."),
                    },
                    "name",
                    "type",
                    "size",
                    "mode",
                    "modifiedAt",
                ),
            },
        },
        "items",
    ),
    TERMINAL: _TERMINAL,
    TERMINALS: _fields(
        "A sandbox's open terminals, the oldest first.",
        {
            **_versioned("nodus.dev/v1", "SandboxTerminalList"),
            "metadata": {"allOf": [{"$ref": LIST_META}], "description": "What every list has."},
            "items": {"type": "array", "items": {"$ref": TERMINAL}, "description": "The terminals."},
        },
        "items",
    ),
    STEPS: _fields(
        "A page of a run's steps.",
        {
            **_versioned("nodus.dev/v1", "StepList"),
            "metadata": {"allOf": [{"$ref": LIST_META}], "description": "What every list has."},
            "items": {
                "type": "array",
                "description": "The steps of the page, in their order.",
                "items": {"$ref": STEP},
            },
        },
        "items",
    ),
    IMAGE_CHOICES: _fields(
        "What sandboxes can be made of: the catalogue's images, and the project's completed ones.",
        {
            **_versioned("nodus.dev/v1", "ImageChoiceList"),
            "metadata": _NOTHING,
            "items": {
                "type": "array",
                "description": "The images.",
                "items": _fields(
                    "An image.",
                    {
                        "image": text("What `spec.image` of an Agent or a Sandbox says."),
                        "source": text("Whose it is.", enum=["Catalog", "Project"]),
                        "digest": text("What the project's image stands for now."),
                    },
                    "image",
                    "source",
                ),
            },
        },
        "items",
    ),
    INFERENCE: _fields(
        "How code in a sandbox uses a model that Nodus serves.",
        {
            **_versioned("nodus.dev/v1", "SandboxInference"),
            "metadata": _fields("What it is about.", {"name": text("The sandbox.")}),
            "model": _fields(
                "A model of the catalogue that can call tools.",
                {
                    "id": text("Its id."),
                    "name": text("What people call it."),
                    "contextWindow": whole("Tokens that it reads at most."),
                    "tokenRates": _texts(
                        "US dollars per million tokens; a rate that is unknown is left out."
                    ),
                },
                "id",
                "name",
                "tokenRates",
            ),
            "models": _list("Ids of all such models."),
            "host": text("The host that the sandbox has to reach, for `network.egress.allow`."),
            "setupPrompt": text("What to tell a coding tool in the sandbox."),
            "python": text("A Python example with that model."),
        },
        "model",
        "models",
        "host",
        "setupPrompt",
        "python",
    ),
    LOGIN_ANSWER: _fields(
        "A key that was given for a login.",
        {
            **_versioned("nodus.dev/v1", "Login"),
            "metadata": _NOTHING,
            "spec": _fields(
                "What was agreed.",
                {
                    "organization": text("The organization whose key it is."),
                    "ttl": text("How long the key lives, as a duration."),
                },
                "organization",
                "ttl",
            ),
            "status": _fields(
                "What was given.",
                {
                    "token": text("The bearer token, which is shown here only."),
                    "expiresAt": moment("When it stops to work."),
                    "apiKey": text("Name of the ApiKey whose token it is: to delete that revokes it."),
                    "identity": text("The ARN that is mapped to the organization."),
                    "projects": _list("Names of the projects that it reaches, or `*` for all."),
                    "permissions": _list("What it may do: scopes and roles."),
                },
                "token",
                "expiresAt",
                "apiKey",
                "identity",
                "projects",
                "permissions",
            ),
        },
        "apiVersion",
        "kind",
        "metadata",
        "spec",
        "status",
    ),
}
"""Each under its name."""
