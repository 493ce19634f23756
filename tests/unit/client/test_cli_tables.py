"""The tables of `nodus get` are the server's: its columns, from one request, also while somebody watches."""

from __future__ import annotations

import json
from itertools import repeat
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import nodus
import pytest
from nodus import _kinds
from nodus._config import Settings
from nodus._wire import Answer, Request
from nodus.cli import tables
from nodus.cli.kinds import kind_of
from nodus_core.resources.kinds import KINDS

from tests.unit.api.rest import Rest
from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer, Fault, Seen
from tests.unit.client.fake_wire import FakeWire
from tests.unit.client.manifests import NEX_04, NEX_07


def row(name: str, *cells: Any) -> dict[str, Any]:
    return {"cells": [name, *cells], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": name}}}


def table(*rows: Any, columns: str = "Name Thing:1 Other") -> dict[str, Any]:
    named = (word.partition(":") for word in columns.split())
    head = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "7"}}
    return head | {
        "columnDefinitions": [{"name": name, "priority": int(more or 0)} for name, _, more in named],
        "rows": list(rows),
    }


def answers(server: FakeServer, *bodies: Any) -> None:
    for body in reversed(bodies):
        server.faults.insert(0, Fault("GET .*/agents", status=200, body=json.dumps(body).encode()))


@pytest.mark.req("NOD-485", "NOD-486")
@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_every_kind_asks_for_the_server_s_table(cli: Cli, server: FakeServer, name: str) -> None:
    cli("get", kind_of(name).plural)
    assert server.seen[-1].headers["accept"] == "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert len(server.seen) == 1


def test_columns_that_this_version_does_not_know_are_shown(cli: Cli, server: FakeServer) -> None:
    answers(server, table(row("a", "x", 7), row("b", None, None)))
    assert cli("get", "agents").out == "NAME  OTHER\na     7\nb\n"
    answers(server, table(row("a", "x", 7)))
    assert cli("get", "agents", "-o", "wide").out == "NAME  THING  OTHER\na     x      7\n"
    answers(server, table(row("a", "x", 7)))
    assert cli("get", "agent/a").out == "NAME  OTHER\na     7\n"
    assert len(server.seen) == 3


def test_a_table_that_is_sorted_asks_for_the_whole_objects(cli: Cli, server: FakeServer) -> None:
    for name, cap in (("a", "2"), ("b", "1")):
        cli("create", "agent", name, "--system", "x", "--max-cost", cap)
    rows = cli("get", "agents", "--sort-by", ".spec.perRunMaxCostUSD", "--no-headers").out.splitlines()
    assert [line.split()[0] for line in rows] == ["b", "a"]
    assert server.seen[-1].query["includeObject"] == "Object"
    cli("get", "agents")
    assert "includeObject" not in server.seen[-1].query


def test_a_table_goes_over_pages_and_selectors(cli: Cli, server: FakeServer) -> None:
    cli("apply", "-f", "-", stdin="---\n".join(NEX_04.replace("hello", f"h{n}") for n in range(5)))
    cli("label", "agents", "--all", "team=web")
    server.page_size = 2
    server.seen.clear()
    rows = cli("get", "agents", "-l", "team=web").out.splitlines()
    assert [line.split()[0] for line in rows] == ["NAME", *(f"h{n}-agent" for n in range(5))]
    assert [seen.query.get("continue") for seen in server.seen] == [None, "at-2", "at-4"]
    assert all(seen.query["labelSelector"] == "team=web" for seen in server.seen)


def watched(server: FakeServer, *windows: Any) -> None:
    """What the windows of a watch hold, after which it is refused."""
    left = [*windows]

    def look(seen: Seen) -> None:
        if seen.query.get("watch") != "true":
            return
        if left and callable(left[0]):
            left.pop(0)()
        elif left:
            lines = "\n".join(map(json.dumps, left.pop(0))).encode()
            server.faults.append(Fault("GET .*", status=200, body=lines))
        else:
            server.faults.append(Fault("GET .*", status=403, reason="Forbidden"))

    server.when_seen = look


NOBODY = Seen("", "", {}, {}, b"")


def made(server: FakeServer, name: str) -> None:
    """An agent appears by somebody else's doing."""
    body = {"apiVersion": "nodus.dev/v1", "metadata": {"name": name}, "spec": {"image": f"image-of-{name}"}}
    server._store(NOBODY, "default", "agents", name, body)


def test_a_wide_watch_shows_what_is_gone_with_all_its_cells(cli: Cli, server: FakeServer) -> None:
    """Whatever was seen of it: listed, added, or changed since."""
    cli("apply", "-f", "-", stdin=NEX_04 + "---\n" + NEX_07)
    cli("create", "agent", "listed", "--system", "x", "--image", "image-of-listed", "--egress", "open")
    watched(
        server,
        lambda: made(server, "added"),
        lambda: server._delete(NOBODY, "default", "agents", "added"),
        lambda: server._delete(NOBODY, "default", "agents", "listed"),
    )
    lines = cli("get", "agents", "-w", "-o", "wide").out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "NAME",
        "hello-agent",
        "listed",
        "added",
        "added",
        "listed",
    ]
    assert [line.count("image-of-") for line in lines] == [0, 0, 1, 1, 1, 1]


def test_a_watch_whose_position_has_expired_goes_on_with_rows(cli: Cli, server: FakeServer) -> None:
    cli("create", "agent", "a", "--system", "x")
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    watched(
        server,
        [{"type": "ERROR", "object": gone}],
        lambda: made(server, "b"),
    )
    lines = cli("get", "agents", "-w").out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "AgentList", "metadata": {}, "items": []},
        table({"cells": ["a", "x", 7]}),
        table({"object": {"metadata": {}}}),
        table(row("a", "x")),
        table(7),
        {**table(row("a", "x", 7)), "columnDefinitions": None},
    ],
)
def test_what_is_no_table_is_said(cli: Cli, server: FakeServer, answer: dict[str, Any]) -> None:
    answers(server, answer)
    output = cli("get", "agents")
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (UnexpectedAnswer): the ")


def test_a_table_of_several_rows_is_no_object(cli: Cli, server: FakeServer) -> None:
    answers(server, table(row("a", "x", 7), row("b", "x", 7)))
    assert "has 2 rows for one object" in cli("get", "agent/a").err


# --- over the server itself ---


def real(rest: Rest) -> nodus.Client:
    """A client whose calls the server answers in this process."""

    def serve(request: Request) -> Answer:
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(parse_qsl(url.query))
        reply = rest.call(request.method, url.path, request.content, headers=headers, query=query)
        return Answer(reply.code, dict(reply.headers), reply.text.encode())

    client = nodus.Client()
    client.__dict__["settings"] = Settings("http://nodus.test", rest.key, None, "web")
    client.__dict__["wire"] = FakeWire(repeat(serve))
    return client


def shown(rows: list[Any], *, wide: bool = False) -> list[dict[str, str]]:
    header, cells = tables.cells_of([row.to_dict() for row in rows], wide=wide)
    return [dict(zip(header, row, strict=True)) for row in cells]


def test_the_server_s_own_rows_are_read_listed_and_watched() -> None:
    rest = Rest()
    rest.agent("a", system="x", image="image-of-a")
    rest.world.clock.advance(60)
    rows = tables.Rows(real(rest), _kinds.AGENT)
    assert shown([rows.get("a")])[0]["NAME"] == "a"
    assert [row["IMAGE"] for row in shown([*rows.list()], wide=True)] == ["image-of-a"]
    watch = rows.watch()
    events = [next(watch)]
    rest.agent("a", system="y", image="image-of-a")
    events.append(next(watch))
    rest.agent("b", system="x", image="image-of-b")
    events.append(next(watch))
    for name in ("a", "b"):
        assert rest.call("DELETE", f"agents/{name}").code == 200
    events += [next(watch), next(watch)]
    watch.close()
    told = [row["IMAGE"] for row in shown([event.object for event in events], wide=True)]
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "ADDED", "DELETED", "DELETED"]
    assert told == [f"image-of-{name}" for name in "aabab"]


def test_the_server_s_rows_with_whole_objects() -> None:
    rest = Rest()
    rest.agent("a", system="x")
    rows = tables.Rows(real(rest), _kinds.AGENT, whole=True)
    assert [row.spec.system for row in rows.list()] == ["x"]
