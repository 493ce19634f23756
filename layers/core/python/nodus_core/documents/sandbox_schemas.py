"""Schemas of what the server answers about sandboxes: commands, terminals, previews, files, images, inference."""

from nodus_core.documents.parts import (
    NOTHING,
    PREFIX,
    Schema,
    fields,
    moment,
    page_of,
    text,
    texts,
    texts_in_order,
    versioned,
    view_of,
    whole,
)

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
PREVIEW = f"{PREFIX}.SandboxPreviewView"
TERMINAL = f"{PREFIX}.SandboxTerminalView"
TERMINALS = f"{PREFIX}.SandboxTerminalList"

_STATUS_OF_COMMAND: Schema = {
    "state": text(
        "How it stands.",
        enum=[*("Pending", "Running", "Exited", "TimedOut", "Cancelled", "OutOfMemory", "Failed"), "Lost"],
    ),
    "exitCode": whole("Its exit code, if it ended by itself."),
    "message": text("Why it did not run (Failed), or why its end was not seen (Lost)."),
    "startedAt": moment("When the sandbox took it."),
    "finishedAt": moment("When it ended."),
}

_TERMINAL = view_of(
    "SandboxTerminal",
    "A terminal in a sandbox, as it stands.",
    {
        "command": text("Shell command line; absent: an interactive shell."),
        "workingDir": text("Folder it began in."),
        "columns": whole("Width that it began with."),
        "rows": whole("Height that it began with."),
        "term": text("Type of the terminal."),
    },
    {
        **_STATUS_OF_COMMAND,
        "connect": fields(
            "Where to connect to, once, by WebSocket.",
            {
                "url": text("The address, with a ticket; whoever has it is let in."),
                "expiresAt": moment("Until when."),
            },
        ),
    },
)

_COMMAND = view_of(
    "SandboxCommand",
    "A command in a sandbox, as it stands.",
    {
        "command": text("Shell command line."),
        "workingDir": text("Folder it runs in."),
        "timeout": text("After how much time it is ended."),
    },
    _STATUS_OF_COMMAND,
    "metadata",
    "spec",
    "status",
)

_ENTRY = fields(
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
)

OF_SANDBOXES: dict[str, Schema] = {
    COMMAND: _COMMAND,
    COMMANDS: page_of(
        "SandboxCommandList",
        "A page of a sandbox's commands, the newest first.",
        "The commands.",
        {"$ref": COMMAND},
    ),
    FILE_CONTENT: text("The bytes of a file.", format="binary"),
    FILE: fields(
        "A file that was saved or moved.",
        {
            **versioned("nodus.dev/v1", "SandboxFile"),
            "path": text("Its path."),
            "size": whole("Bytes."),
            "etag": text("Its version."),
        },
        "path",
    ),
    FILE_REMOVAL: fields(
        "What was removed.",
        {**versioned("nodus.dev/v1", "SandboxFileRemoval"), "path": text("Its path.")},
        "path",
    ),
    FILE_UPLOAD: fields(
        "Where a content is to be put, within 15 minutes.",
        {
            **versioned("nodus.dev/v1", "SandboxFileUpload"),
            "id": text("What to save the file with (upload)."),
            "method": text("How to send it.", enum=["PUT"]),
            "url": text("Where to; without the credential."),
            "headers": texts("What to send with it."),
        },
        "id",
        "method",
        "url",
        "headers",
    ),
    FOLDER: fields(
        "A folder that is there.",
        {**versioned("nodus.dev/v1", "SandboxFolder"), "path": text("Its path.")},
        "path",
    ),
    FILES: page_of(
        "SandboxFileList", "A page of a folder in a sandbox, by name.", "What stands in the folder.", _ENTRY
    ),
    TERMINAL: _TERMINAL,
    TERMINALS: page_of(
        "SandboxTerminalList",
        "A sandbox's open terminals, the oldest first.",
        "The terminals.",
        {"$ref": TERMINAL},
    ),
    PREVIEW: fields(
        "An address that shows a web service in a sandbox.",
        {
            **versioned("nodus.dev/v1", "SandboxPreview"),
            "sandbox": text("The sandbox."),
            "port": whole("Where the service listens in it."),
            "url": text(
                "The address, without a credential: whoever has it may use the service. It is a secret."
            ),
            "expiresAt": moment("Until when."),
        },
        "sandbox",
        "port",
        "url",
        "expiresAt",
    ),
    IMAGE_CHOICES: fields(
        "What sandboxes can be made of: the catalogue's images, and the project's completed ones.",
        {
            **versioned("nodus.dev/v1", "ImageChoiceList"),
            "metadata": NOTHING,
            "items": {
                "type": "array",
                "description": "The images.",
                "items": fields(
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
    INFERENCE: fields(
        "How code in a sandbox uses a model that Nodus serves.",
        {
            **versioned("nodus.dev/v1", "SandboxInference"),
            "metadata": fields("What it is about.", {"name": text("The sandbox.")}),
            "model": fields(
                "A model of the catalogue that can call tools.",
                {
                    "id": text("Its id."),
                    "name": text("What people call it."),
                    "contextWindow": whole("Tokens that it reads at most."),
                    "tokenRates": texts("US dollars per million tokens; a rate that is unknown is left out."),
                },
                "id",
                "name",
                "tokenRates",
            ),
            "models": texts_in_order("Ids of all such models."),
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
}
"""Each under its name."""
