"""Types of fields that several kinds share, and the base of every model of a spec."""

import posixpath
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from nodus_core.kernel.errors import Cause
from nodus_core.resources.checks import Check, Said, check, whole
from nodus_core.resources.document import Written

MOST_TEXT = 262_144
"""Bytes of UTF-8 of `spec.input`, `spec.system` and every message (NOD-039, NOD-589)."""

_DAEMONS = ("/opt/sandboxd", "/var/lib/sandboxd")
SANDBOX_FOLDERS = ("/home", *_DAEMONS)
"""Folders of every sandbox that no working folder may be, or hide by lying above them."""
SYSTEM_FOLDERS = (
    *(
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/proc",
        "/root",
        "/run",
        "/sbin",
    ),
    *("/sys", "/usr", *_DAEMONS),
)
"""Folders of every sandbox that are not its commands': no working folder may lie in them."""

# What a field may hold at most: bytes of UTF-8 of texts, characters of names. docs/limits.md shows all of them.
MOST_SCRIPT = 65_536
LONGEST_FOLDER = 1024
LONGEST_FOLDER_PART = 255
"""What Linux takes as the name of one file or folder."""
LONGEST_NAME = 253
LONGEST_LABEL = 63
LONGEST_KEY = 128
LONGEST_IMAGE = 512
LONGEST_REPOSITORY = 200
LONGEST_REF = 255
LONGEST_MODEL = 256
MOST_DOLLARS = Decimal(100_000)

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
LABEL_FORM = re.compile(_LABEL)
_MONEY = re.compile(r"\d+(\.\d{1,6})?", re.ASCII)
_NUMBER = re.compile(r"\d{1,4}(\.\d{1,2})?", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IMAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:/@-]*[A-Za-z0-9])?")
_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_PORT = r"[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_HOST = re.compile(
    r"(?:\*\.)?(?:[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][-A-Za-z0-9]{0,61}[A-Za-z0-9]"
    rf"(?::(?:{_PORT}))?"
)
_REF = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/+-]*[A-Za-z0-9_+-])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELD = re.compile(r"[A-Za-z0-9_.-]+")


class Spec(BaseModel):
    """A spec or a part of one: unknown fields and wrong types are refused (NODQ-61), names are camelCase.

    Each field says by its description what the published schema tells of it. (To read docstrings below the fields
    instead takes as long as to make all models, at every cold start.)

    The model of a whole spec is that of `spec` as written; it says by `as_stored` and `changed` what else its kind
    asks for, and by its docstring what the schema tells of the kind.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, hide_input_in_errors=True
    )

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        """A spec that this model has accepted, as it is stored: money given as a number as the text that was written."""
        return spec

    @classmethod
    def changed(cls, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Cause]:
        """What is wrong with changing a stored spec into another that is right by itself."""
        return iter(())


def as_texts(spec: dict[str, Any], *names: str) -> dict[str, Any]:
    """A spec whose fields of money are texts, whatever they were given as (NODQ-92)."""
    return {**spec, **{name: str(spec[name]) for name in names if name in spec}}


def problem(message: str) -> PydanticCustomError:
    """A refusal of one field, in words that say what to do; never with the field's value."""
    return PydanticCustomError("refused", "{problem}", {"problem": message})


def too_large(message: str) -> PydanticCustomError:
    """A refusal of a field that has too many bytes (413); the message says how many it has and how many it may."""
    return PydanticCustomError("too_large", "{problem}", {"problem": message})


def misplaced(field: str, message: str) -> PydanticCustomError:
    """A refusal that a model makes about one of its fields, named by its wire name."""
    return PydanticCustomError("misplaced", "{problem}", {"problem": message, "field": field})


def is_name(text: str) -> bool:
    """Whether `text` may name an object: a DNS-1123 subdomain of at most 253 characters (NODQ-40)."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Whether `text` may name a project or organization: a DNS-1123 label of at most 63 characters."""
    return len(text) <= LONGEST_LABEL and LABEL_FORM.fullmatch(text) is not None


def money(value: str) -> Decimal:
    """The amount, in US dollars, of a text that `Money` has accepted."""
    return Decimal(value)


def at_most(limit: int) -> Check:
    """A check of a text's size in bytes of UTF-8; a larger one is `too_large` (413)."""

    @check(maxLength=limit)  # no text has more characters than bytes
    def fits(value: str) -> str:
        size = len(value.encode())
        if size > limit:
            raise too_large(f"has {size} bytes, at most {limit} bytes of UTF-8 are taken")
        return value

    return fits


def _not_a_number(value: Any) -> Any:
    if isinstance(value, Written):
        raise PydanticCustomError("string_type", "must be a text")
    return value


def _whole_number(value: Any) -> Any:
    if isinstance(value, Written):
        raise PydanticCustomError("int_type", "must be a whole number")
    return value


def _dollars(value: Any) -> str:
    """Money as written; numbers are taken, too (NODQ-92)."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise problem('must be an amount of US dollars such as "0.50"')
    text = str(value)
    if len(text) > len("100000.000000") or _MONEY.fullmatch(text) is None:
        raise problem('must be an amount of US dollars with at most six decimals, such as "0.50"')
    if not 0 < Decimal(text) <= MOST_DOLLARS:
        raise problem(f"must be more than 0 and at most {MOST_DOLLARS} US dollars")
    return text


def _number(value: Any) -> str:
    """A number above 0 with at most two decimals, as written; as a text it is taken, too."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or _NUMBER.fullmatch(str(value)) is None:
        raise problem('must be a number such as 2 or "0.5"')
    return str(value)


@check(pattern="^/", minLength=2, maxLength=LONGEST_FOLDER, example="/workspace")
def _clean_path(value: str) -> str:
    if not value.startswith("/") or posixpath.normpath(value) != value or value in ("/", "//"):
        raise problem("must be an absolute folder other than /, without . or .. or a slash at its end")
    if any(not char.isprintable() for char in value):
        raise problem("must not hold control characters")
    if any(len(part.encode()) > LONGEST_FOLDER_PART for part in value.split("/")):
        raise problem(f"must have at most {LONGEST_FOLDER_PART} bytes between two slashes")
    return at_most(LONGEST_FOLDER)(value)


def _not_the_systems(value: str) -> str:
    """A folder that a sandbox can give to its commands: none of the system, none above or in the daemon's own."""
    wanted = PurePosixPath(value)
    inside = next((folder for folder in SYSTEM_FOLDERS if wanted.is_relative_to(folder)), None)
    above = next((folder for folder in SANDBOX_FOLDERS if PurePosixPath(folder).is_relative_to(wanted)), None)
    if inside or above:
        raise problem(
            f"must be a folder of its own, for example /workspace: {inside or above} is the sandbox's"
        )
    return value


@check(minLength=1)
def not_blank(value: str) -> str:
    """A check that a text holds more than white space."""
    if not value.strip():
        raise problem("must not be empty")
    return value


@check(maxLength=LONGEST_KEY)
def _key(value: str) -> str:
    """A key of 1 to 128 bytes that can be shown (NODQ-18, NOD-590)."""
    if len(value.encode()) > LONGEST_KEY or not value.isprintable():
        raise problem(f"must be 1 to {LONGEST_KEY} bytes without control characters")
    return value


_OF_CLIENTS = ("NODUS_SERVER", "NODUS_TOKEN", "NODUS_ORG", "NODUS_PROJECT")
"""What the package `nodus` reads: code in a sandbox may be given a server and a key of its own."""


@check(pattern=whole(_VARIABLE), maxLength=LONGEST_NAME)
def _variable(value: str) -> str:
    if len(value) > LONGEST_NAME or _VARIABLE.fullmatch(value) is None:
        raise problem(f"must be at most {LONGEST_NAME} letters, digits and _, not beginning with a digit")
    if value.startswith("NODUS_") and value not in _OF_CLIENTS:
        free = ", ".join(_OF_CLIENTS)
        raise problem(f"names that begin with NODUS_ are the sandbox's own, except {free}")
    return value


def _text(pattern: re.Pattern[str], most: int, message: str) -> Check:
    """A check of a text's form, whose refusal names the most characters, too."""
    said = f"{message} (at most {most} characters)"

    @check(pattern=whole(pattern), maxLength=most)
    def has_form(value: str) -> str:
        if len(value) > most or pattern.fullmatch(value) is None:
            raise problem(said)
        return value

    return has_form


Str = Annotated[str, BeforeValidator(_not_a_number)]
Whole = Annotated[int, BeforeValidator(_whole_number)]
Money = Annotated[str, BeforeValidator(_dollars), Said(pattern=whole(_MONEY), example="0.50")]
Number = Annotated[str, BeforeValidator(_number), Said(pattern=whole(_NUMBER))]
Prompt = Annotated[Str, at_most(MOST_TEXT)]
Script = Annotated[Str, not_blank, at_most(MOST_SCRIPT)]
Folder = Annotated[Str, _clean_path]
WorkingFolder = Annotated[Folder, AfterValidator(_not_the_systems)]
Name = Annotated[Str, _text(_NAME, LONGEST_NAME, "must be lower case letters, digits, - and .")]
Label = Annotated[Str, _text(LABEL_FORM, LONGEST_LABEL, "must be lower case letters, digits and -")]
RequestKey = Annotated[Str, not_blank, _key]
"""What a caller calls a request of its own; a message's key likewise."""
Revision = Annotated[Str, _text(_VERSION, LONGEST_LABEL, "must be a version: letters, digits, - _ and .")]
Variable = Annotated[Str, _variable]
SecretField = Annotated[Str, _text(_FIELD, LONGEST_NAME, "must be letters, digits, _ . and -")]
Image = Annotated[
    Str, _text(_IMAGE, LONGEST_IMAGE, "must be an image such as nodus/agent-tools or host/name:tag")
]
Repository = Annotated[Str, _text(_REPO, LONGEST_REPOSITORY, "must be a repository written as owner/name")]
Ref = Annotated[Str, _text(_REF, LONGEST_REF, "must be a branch, a tag or a commit")]
Digest = Annotated[Str, _text(_DIGEST, 64, "must be a SHA-256 in 64 small hexadecimal digits")]
Host = Annotated[
    Str,
    _text(
        _HOST,
        LONGEST_NAME,
        "must be a host name such as api.github.com, *.github.com for all below it, or either with :PORT",
    ),
]
ModelName = Annotated[Str, not_blank, Field(max_length=LONGEST_MODEL)]
