"""What the routes of all kinds share: lists and outcomes as they are sent."""

import json
from collections.abc import Sequence
from typing import Any, cast, get_args

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.happenings import Event
from nodus_core.conversations.listing import MOST_REPLY, PageOf
from nodus_core.conversations.messages import Accepted
from nodus_core.conversations.promises import Promise, promise
from nodus_core.conversations.shelf import Outcome, key_of
from nodus_core.conversations.watching import Watch
from nodus_core.kernel.times import stamp
from nodus_core.resources.document import bad
from nodus_core.resources.kinds import API_VERSION, BY_NAME
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.selectors import Selection, read_selection
from nodus_core.resources.tables import Include, Tables

from functions.api.call import Call
from functions.api.gate import lines_reply, reply
from functions.api.service import Service

SELECTORS = ("fieldSelector", "labelSelector")
WATCH = ("watch", "resourceVersion", "timeoutSeconds", "allowWatchBookmarks")


def list_objects(service: Service, place: Place, call: Call, kind: str) -> Response[Any]:
    """A page of a kind's objects, or a window of what changes among them."""
    call.only("limit", "continue", *SELECTORS, *WATCH)
    if call.flag("watch"):
        if BY_NAME[kind].namespaced and not place.project:
            raise bad("a watch tells of one project: watch below namespaces/PROJECT (kubectl -n PROJECT)")
        return _window(service, place, call, kind)
    page = service.listing.page(place, kind, call.limit(), call.query.get("continue"), selection(call))
    metadata = {"resourceVersion": page.version}
    tables = tables_for(service, call, kind)
    if tables is None:
        return list_reply(BY_NAME[kind].list_name, page, metadata)
    return reply(tables.table(page.items, _with_continue(metadata, page)))


def object_reply(service: Service, call: Call, shown: dict[str, Any]) -> Response[Any]:
    """One object, or a table of one row."""
    tables = tables_for(service, call, shown["kind"])
    if tables is None:
        return reply(shown)
    return reply(tables.table([shown], {"resourceVersion": shown["metadata"]["resourceVersion"]}))


def tables_for(service: Service, call: Call, kind: str) -> Tables | None:
    """The tables that a caller wants instead of objects. Raises `Refusal` `BadRequest`."""
    if not call.wants_table:
        return None
    include = call.query.get("includeObject", "Metadata")
    if include not in get_args(Include):
        raise bad(f"includeObject must be one of {', '.join(get_args(Include))}")
    return Tables(BY_NAME[kind], service.clock.now(), cast("Include", include))


def selection(call: Call) -> Selection:
    """Which objects a call of a whole kind is about. Raises `Refusal` `BadRequest`."""
    return read_selection(*map(call.query.get, SELECTORS))


def _window(service: Service, place: Place, call: Call, kind: str) -> Response[Any]:
    seconds, longest = call.number("timeoutSeconds"), service.watching.window_s
    watch = Watch(
        call.number("resourceVersion"),
        selection(call),
        longest if seconds is None else seconds,
        call.flag("allowWatchBookmarks"),
    )
    events = service.watching.window(place, kind, watch)
    tables = tables_for(service, call, kind)
    return lines_reply(
        [
            {"type": event.type, "object": event.object if tables is None else _row(tables, event, number)}
            for number, event in enumerate(events)
        ]
    )


def _row(tables: Tables, event: Event, number: int) -> dict[str, Any]:
    """An event's object as a table of one row; the columns stand in the first one."""
    version = {"resourceVersion": event.object["metadata"]["resourceVersion"]}
    return tables.table([event.object], version, headed=number == 0, cells=event.cells)


def list_reply(kind: str, page: PageOf, metadata: dict[str, str]) -> Response[Any]:
    metadata = _with_continue(metadata, page)
    return reply({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "items": page.items})


def _with_continue(metadata: dict[str, str], page: PageOf) -> dict[str, str]:
    """A list's metadata, with where its next page begins if there is one."""
    return metadata if page.after is None else {**metadata, "continue": page.after}


def outcome_reply(service: Service, outcome: Outcome, code: int | None = None) -> Response[Any]:
    """The object of an outcome; 201 when it is new (FLD-16: a replayed one says so)."""
    headers = {"Idempotent-Replayed": "true"} if outcome.replayed else {}
    return reply(service.reading.shown(outcome), code or (201 if outcome.created else 200), headers)


def _bare(item: dict[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in item["metadata"].items() if name != "annotations"}
    return {name: value for name, value in {**item, "metadata": metadata}.items() if name != "spec"}


def outcomes_reply(service: Service, outcomes: Sequence[Outcome]) -> Response[Any]:
    """The objects that were created together; without specs and annotations where those are more than an answer holds."""
    shown = [service.reading.shown(outcome) for outcome in outcomes]
    if sum(len(json.dumps(item, default=str)) for item in shown) > MOST_REPLY:
        shown = [_bare(item) for item in shown]
    headers = {"Idempotent-Replayed": "true"} if outcomes[0].replayed else {}
    kind = BY_NAME[outcomes[0].object.key.kind].list_name
    return reply({"apiVersion": API_VERSION, "kind": kind, "metadata": {}, "items": shown}, 201, headers)


def message_reply(accepted: Accepted) -> Response[Any]:
    """What was accepted: 202, or 200 when it had been accepted before (NODQ-17)."""
    headers = {"Idempotent-Replayed": "true"} if accepted.replayed else {}
    body = {
        "apiVersion": API_VERSION,
        "kind": "Message",
        "agentRun": accepted.run,
        "messageKey": accepted.message_key,
        "turn": accepted.turn,
        "acceptedAt": stamp(accepted.at),
    }
    return reply(body, 200 if accepted.replayed else 202, headers)


def promised(place: Place, call: Call, manifest: Manifest) -> Promise | None:
    """The promise of a create that carries an `Idempotency-Key`. Raises `Refusal` `BadRequest`."""
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    return promise(key_of(place, manifest.kind, manifest.name), call.method, call.path, key, manifest)


def required(place: Place, call: Call, manifests: Sequence[Manifest]) -> Promise:
    """The promise of a create of several objects, which must carry a key (NOD-364). Raises `Refusal` `BadRequest`."""
    key = call.headers.get("idempotency-key")
    if key is None:
        raise bad("a list is created with the header Idempotency-Key; send the same one to try again")
    kind = manifests[0].kind
    return promise(key_of(place, kind, ""), call.method, call.path, key, *manifests)
