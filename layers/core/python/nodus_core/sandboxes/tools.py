"""The sandbox tools of the model: what it may ask for, and the command each call becomes (NODQ-87)."""

import json
from dataclasses import dataclass
from typing import Any

from nodus_core.inference.exchange import ToolSpec
from nodus_core.kernel import ids
from nodus_core.sandboxes.frames import MOST_REQUEST_BYTES, answer_size

DEFAULT_TIMEOUT_S = 60
MOST_TIMEOUT_S = 24 * 3600
"""Bounds of a command's time (NODQ-68)."""

GRACE_S = 2
"""Seconds between the polite signal and the forced end of a command (FLD-09: at most 3)."""

READ_LIMIT = 64 * 1024


TERMINAL = "terminal"
"""Kind of a command that is an interactive terminal; its request is docs/protocols.md §2."""


@dataclass(frozen=True)
class Order:
    """What the daemon is asked to do: the command's kind and request (docs/protocols.md §2)."""

    kind: str
    request: dict[str, Any]


@dataclass(frozen=True)
class Misuse:
    """The call cannot be carried out; the text tells the model why (FLD-01)."""

    text: str


def _schema(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


TOOLS = (
    ToolSpec(
        ids.RUN_COMMAND,
        "Run a shell command in the sandbox and get its output and exit code.",
        _schema(
            ["command"],
            command={"type": "string", "description": "Shell command line."},
            cwd={"type": "string", "description": "Folder to run in; the working directory by default."},
            timeout={
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_TIMEOUT_S,
                "description": f"Seconds after which the command is ended; {DEFAULT_TIMEOUT_S} by default.",
            },
        ),
    ),
    ToolSpec(
        "read_file",
        "Read a text file in the sandbox.",
        _schema(
            ["path"],
            path={"type": "string", "description": "Absolute, or relative to the working directory."},
            offset={"type": "integer", "minimum": 0, "description": "First byte to read; 0 by default."},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": READ_LIMIT,
                "description": f"Bytes to read at most; {READ_LIMIT} by default.",
            },
        ),
    ),
    ToolSpec(
        "write_file",
        "Write a text file in the sandbox; its folders are made, an existing file is replaced.",
        _schema(
            ["path", "content"],
            path={"type": "string", "description": "Absolute, or relative to the working directory."},
            content={"type": "string", "description": "The whole text of the file."},
        ),
    ),
)

_SPECS = {tool.name: tool for tool in TOOLS}


def exec_order(command: str, cwd: str, timeout_s: int, env: dict[str, str]) -> Order:
    """A shell command as the daemon takes it. `timeout_s` counts from its start to its end."""
    return Order(
        "exec", {"command": command, "cwd": cwd, "timeoutS": timeout_s, "graceS": GRACE_S, "env": env}
    )


def persons_order(command: str, cwd: str, timeout_s: int, env: dict[str, str]) -> Order:
    """A person's shell command: the daemon keeps its output, both streams apart, and the result has none of it."""
    order = exec_order(command, cwd, timeout_s, env)
    return Order(order.kind, {**order.request, "log": True})


def plan(tool: str, arguments: str, working_dir: str, env: dict[str, str]) -> Order | Misuse:
    """The command of a model's call, or why there is none. `arguments` should be the text of a JSON object."""
    spec = _SPECS.get(tool)
    if spec is None:
        return Misuse(f"There is no tool {tool!r}. Tools: {', '.join(_SPECS)}.")
    read = _read(arguments)
    problem = "the arguments are no JSON object" if read is None else _problem(spec, read)
    if read is None or problem:
        return Misuse(f"{tool}: {problem}")
    order = _order(
        tool, {name: _encodable(value) for name, value in read.items() if value is not None}, working_dir, env
    )
    size = answer_size(json.dumps(order.request, ensure_ascii=False))
    if size > MOST_REQUEST_BYTES:
        return Misuse(
            f"{tool}: the call takes {size} bytes on its way to the sandbox; at most {MOST_REQUEST_BYTES} are taken."
            " Send it in several smaller calls, for example a long file in parts that are put together."
        )
    return order


def _order(tool: str, values: dict[str, Any], working_dir: str, env: dict[str, str]) -> Order:
    """The command of a call whose arguments fit."""
    match tool:
        case ids.RUN_COMMAND:
            cwd = _absolute(values.get("cwd", working_dir), working_dir)
            return exec_order(values["command"], cwd, values.get("timeout", DEFAULT_TIMEOUT_S), env)
        case "read_file":
            return Order(
                "read_file",
                {
                    "path": _absolute(values["path"], working_dir),
                    "offset": values.get("offset", 0),
                    "limit": values.get("limit", READ_LIMIT),
                },
            )
        case _:
            return Order(
                "write_file",
                {
                    "path": _absolute(values["path"], working_dir),
                    "content": values["content"],
                    "mode": 0o644,
                    "createDirs": True,
                },
            )


def _read(arguments: str) -> dict[str, Any] | None:
    """The arguments, or None when they are no JSON object (or nested beyond reading)."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _encodable(value: Any) -> Any:
    """A value without lone surrogates, which models write and no UTF-8 holds: each becomes `?` (FLD-08)."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _problem(spec: ToolSpec, values: dict[str, Any]) -> str | None:
    properties: dict[str, dict[str, Any]] = spec.schema["properties"]
    for name in spec.schema["required"]:
        if values.get(name) is None:
            return f"argument {name!r} is missing"
    for name, value in values.items():
        if name not in properties:
            return f"unknown argument {name!r}; arguments: {', '.join(properties)}"
        if value is not None and (problem := _value_problem(name, value, properties[name])):
            return problem
    return None


def _value_problem(name: str, value: Any, rule: dict[str, Any]) -> str | None:
    if rule["type"] == "string":
        if not isinstance(value, str):
            return f"argument {name!r} must be a string"
        if "\x00" in value and name != "content":
            return f"argument {name!r} holds a NUL character"
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return f"argument {name!r} must be a whole number"
    low, high = rule["minimum"], rule.get("maximum")
    if value < low or (high is not None and value > high):
        return f"argument {name!r} must be from {low} to {high if high is not None else 'any'}"
    return None


def _absolute(path: str, working_dir: str) -> str:
    return path if path.startswith("/") else f"{working_dir.rstrip('/')}/{path}"
