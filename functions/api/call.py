"""One HTTP call: its headers, query and body, read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from nodus_core.aws.http_events import body_of, headers_of
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.document import bad, read_json
from nodus_core.resources.media_types import APPLY, JSON
from nodus_core.resources.yaml_text import read_yaml

PAGE = 100
LARGEST_PAGE = 500
LONGEST_NUMBER = 18
# What Kubernetes clients add and what changes nothing here: fields are always checked strictly, reads are always of
# now, an answer is as long as it is, and how long it takes (`timeout`) is API Gateway's to say.
_TOLERATED = frozenset(
    {
        *("fieldManager", "fieldValidation", "force", "includeObject", "pretty"),
        *("resourceVersionMatch", "timeout"),
    }
)


@dataclass(frozen=True)
class Call:
    """A call as it came in; header names are in lower case, `path` is without the host.

    `source` is the address that it comes from, by API Gateway's word.
    """

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    source: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Self:
        """The call in an HTTP API event (payload format 2.0). Raises `Refusal` `BadRequest`."""
        return cls(
            method=event["requestContext"]["http"]["method"],
            path=event.get("rawPath", ""),
            headers=headers_of(event),
            query=event.get("queryStringParameters") or {},
            body=body_of(event),
            source=event["requestContext"]["http"].get("sourceIp", ""),
        )

    def content_type(self, *allowed: str) -> str:
        """The body's media type. Raises `Refusal` `UnsupportedMediaType` when it is none of these."""
        given = self._media_type()
        if given not in allowed:
            wanted = " or ".join(allowed)
            raise Refusal("UnsupportedMediaType", f"send Content-Type: {wanted}")
        return given

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET"

    @property
    def has_key(self) -> bool:
        """Whether it carries a key by which a create is known again (FLD-16)."""
        return "idempotency-key" in self.headers

    @property
    def is_apply(self) -> bool:
        """Whether it states how the object is to be, where a merge patch states a change."""
        return self._media_type() == APPLY

    def json(self) -> dict[str, Any]:
        """The JSON object in the body. Raises `Refusal` as `read_json` does."""
        return read_json(self.body)

    def yaml(self) -> dict[str, Any]:
        """The object in a body that is YAML or JSON. Raises `Refusal` as `read_yaml` does."""
        return read_yaml(self.body)

    @property
    def is_rehearsal(self) -> bool:
        """Whether everything is to be checked and nothing stored. Raises `Refusal` `BadRequest`."""
        wish = self.query.get("dryRun")
        if wish not in (None, "All"):
            raise bad("dryRun must be All, or left out")
        return wish is not None

    @property
    def wants_table(self) -> bool:
        """Whether it takes rows for a table, as kubectl asks for what it prints: the first form that it names."""
        for media in self.headers.get("accept", "").split(","):
            name, *parameters = (part.strip() for part in media.split(";"))
            if name in (JSON, "*/*"):
                return {"as=Table", "v=v1", "g=meta.k8s.io"} <= set(parameters)
        return False

    def only(self, *known: str) -> None:
        """Refuses query parameters that would be ignored. Raises `Refusal` `BadRequest`."""
        for name in self.query:
            if name not in known and name not in _TOLERATED:
                there = f"; there are {', '.join(known)}" if known else ""
                raise bad(f"query parameter {name[:40]!a} is not known here{there}")

    def limit(self) -> int:
        """The page size that is asked for (NODQ-71). Raises `Refusal` `BadRequest`."""
        text = self.query.get("limit")
        if text is None:
            return PAGE
        if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= LARGEST_PAGE):
            raise bad(f"limit must be 1 to {LARGEST_PAGE}")
        return int(text)

    def flag(self, name: str) -> bool:
        """A query parameter that is on or off. Raises `Refusal` `BadRequest`."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "1", "false", "0", ""):
            raise bad(f"{name} must be true or false")
        return text in ("true", "1")

    def number(self, name: str) -> int | None:
        """A query parameter that is a whole number; None: it is not there. Raises `Refusal` `BadRequest`."""
        text = self.query.get(name, "")
        if text and not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
            raise bad(f"{name} must be a whole number")
        return int(text) if text else None

    def _media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()
