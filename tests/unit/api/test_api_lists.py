"""Lists page by page, and which objects they are about."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.journal.store import Key, Page, Row
from nodus_core.resources.manifest import Manifest, read_manifest
from nodus_core.resources.selectors import LONGEST_LABELS, MOST_REQUIREMENTS, MOST_VALUES, read_labels
from nodus_core.testing.memory_store import MemoryStore

from tests.unit.api.rest import Rest, manifest

PLACE = Place("acme", "web", "alice")


@pytest.fixture
def rest() -> Rest:
    return Rest()


def create(rest: Rest, name: str, **labels: str) -> None:
    body = manifest("Agent", name, {})
    body["metadata"]["labels"] = labels
    assert rest.post("agents", body).code == 201


def names(page: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in page["items"]]


def pages(rest: Rest, plural: str, limit: int, **query: str) -> tuple[list[str], set[str]]:
    """All names in the order in which the pages gave them, and the versions that the pages had."""
    found: list[str] = []
    versions: set[str] = set()
    more: dict[str, str] = {}
    while True:
        page = rest.get(plural, query={"limit": str(limit), **query, **more}).json
        found += names(page)
        versions.add(page["metadata"]["resourceVersion"])
        assert "remainingItemCount" not in page["metadata"]
        if "continue" not in page["metadata"]:
            return found, versions
        more = {"continue": page["metadata"]["continue"]}


def everywhere(rest: Rest, limit: int, key: str | None = None, **query: str) -> list[tuple[str, str]]:
    """Projects and names of all agents that a key finds without naming a project."""
    found: list[tuple[str, str]] = []
    more: dict[str, str] = {}
    while True:
        page = rest.get(
            "/apis/nodus.dev/v1/agents", key=key, query={"limit": str(limit), **query, **more}
        ).json
        assert len(page["items"]) <= limit
        found += [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in page["items"]]
        if "continue" not in page["metadata"]:
            return found
        more = {"continue": page["metadata"]["continue"]}


@pytest.mark.req("NODQ-71", "NOD-004")
def test_a_list_through_all_projects_shows_those_of_the_key_and_no_other(rest: Rest) -> None:
    """As `kubectl get -A` asks; the templates' project and other organizations are not among them."""
    rest.directory.create_project("acme", "empty")
    rest.directory.create_organization("other")
    rest.directory.create_project("other", "web")
    foreign = rest.new_key(org="other")
    rest.post("agents", manifest("Agent", "spy", {}), key=foreign)
    wanted = [(project, name) for project in ("lab", "web") for name in ("a", "b", "c")]
    for project, name in wanted:
        assert rest.post("agents", manifest("Agent", name, {}), project=project).code == 201
    for limit in (1, 2, 4, 500):
        assert everywhere(rest, limit) == wanted
    assert everywhere(rest, 2, fieldSelector="metadata.name=b") == [("lab", "b"), ("web", "b")]
    of_web = rest.new_key(projects=("web",))
    assert everywhere(rest, 2, of_web) == wanted[3:]
    assert everywhere(rest, 2, foreign) == [("web", "spy")]


def test_what_a_list_through_all_projects_refuses(rest: Rest) -> None:
    path = "/apis/nodus.dev/v1/agents"
    assert rest.get(path, key=rest.new_key(permissions=("agentruns:read",))).code == 403
    watched = rest.get(path, query={"watch": "true", "resourceVersion": "1"})
    assert (watched.code, watched.json["reason"]) == (400, "BadRequest")
    assert "namespaces/PROJECT" in watched.json["message"]
    assert rest.post(path, manifest("Agent", "a", {})).code == 405
    create(rest, "a")
    create(rest, "b")
    token = rest.get(path, query={"limit": "1"}).json["metadata"]["continue"]
    assert rest.get("agents", query={"continue": token}).code == 400, "it is of another list"


@pytest.mark.req("NODQ-71")
def test_pages_neither_repeat_nor_skip_while_others_create_and_delete(rest: Rest) -> None:
    rest.agent()
    stay = [f"run-{number:03d}" for number in range(250)]
    over, between = threading.Event(), list[str]()
    admit = rest.gate.service.admission.admit_run

    def wanted(name: str) -> Manifest:
        body = manifest("AgentRun", name, {"agent": "hello-agent", "input": "x"})
        return read_manifest(body, "AgentRun", PLACE.project)

    for name in stay:
        admit(PLACE, wanted(name))

    def disturb() -> None:
        number = 0
        while not over.is_set():
            number += 1
            name = f"run-{number * 7 % 250:03d}-between"
            admit(PLACE, wanted(name))
            rest.gate.service.control.delete(PLACE, name)
            between.append(name)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for limit in (7, 40, 100):
            found, versions = pages(rest, "agentruns", limit)
            assert found == sorted(set(found))
            assert [name for name in found if not name.endswith("-between")] == stay
            assert len(versions) == 1
    finally:
        over.set()
        thread.join()
    assert between


def test_a_watch_from_any_page_tells_what_happened_since_the_first(rest: Rest) -> None:
    for name in ("a", "b", "c", "d"):
        create(rest, name)
    rest.world.clock.advance(60)
    first = rest.get("agents", query={"limit": "2"}).json
    rest.call("DELETE", "agents/a")
    create(rest, "aa")
    rest.world.clock.advance(60)
    last = rest.get("agents", query={"limit": "2", "continue": first["metadata"]["continue"]}).json
    assert names(last) == ["c", "d"]
    query = {"watch": "true", "timeoutSeconds": "0", "resourceVersion": last["metadata"]["resourceVersion"]}
    told = rest.get("agents", query=query).text
    assert '"type":"DELETED"' in told
    assert '"name":"aa"' in told


def test_a_token_of_another_list_is_refused(rest: Rest) -> None:
    for name in ("a", "b", "c"):
        create(rest, name, tier="web")
        rest.agent(name)
    query = {"limit": "1", "labelSelector": "tier=web"}
    given = rest.get("agents", query=query).json["metadata"]["continue"]
    assert names(rest.get("agents", query={**query, "continue": given}).json) == ["b"]
    for plural, project, other in (
        ("agents", "web", {}),
        ("agents", "web", {"labelSelector": "tier=db"}),
        ("agents", "web", {"labelSelector": "tier=web", "fieldSelector": "metadata.name!=x"}),
        ("agents", "lab", {"labelSelector": "tier=web"}),
        ("agentruns", "web", {"labelSelector": "tier=web"}),
    ):
        reply = rest.get(plural, project=project, query={**other, "continue": given})
        assert (reply.code, reply.json["reason"]) == (400, "BadRequest")
        assert "another list" in reply.json["message"]


@pytest.mark.req("NOD-470")
@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        ("tier=web", "ab"),
        ("tier==web", "ab"),
        (" tier = web , env = prod ", "a"),
        ("tier!=web", "cd"),
        ("tier in (web,db)", "abc"),
        ("tier in ( web , db ),env notin (prod)", "bc"),
        ("tier notin (web)", "cd"),
        ("tier", "abc"),
        ("!tier", "d"),
        ("! tier", "d"),
        ("env=", "c"),
        ("env in (,test)", "bc"),
        ("example.com/team=red", "d"),
        ("in in (a)", ""),
        ("", "abcd"),
    ],
)
def test_label_selectors(rest: Rest, selector: str, picked: str) -> None:
    create(rest, "a", tier="web", env="prod")
    create(rest, "b", tier="web", env="test")
    create(rest, "c", tier="db", env="")
    create(rest, "d", **{"example.com/team": "red"})
    assert "".join(names(rest.get("agents", query={"labelSelector": selector}).json)) == picked


@pytest.mark.parametrize(
    "selector",
    [
        *("=", "!", "a=b=c", "a!b", "a in", "a in b", "a in (b", "a in (b c)", "a,,b", "a,", ",a", "a (b)"),
        *("-a=b", "a=-b", "a\x00=b", "a=\u00e4", "a>1", "A/B/c=d", "x" * 64, "a=" + "x" * 64),
        "a=b," * LONGEST_LABELS,
        ",".join(["a"] * (MOST_REQUIREMENTS + 1)),
        f"a in ({','.join(map(str, range(MOST_VALUES + 1)))})",
    ],
)
def test_label_selectors_that_cannot_be_read_are_refused(rest: Rest, selector: str) -> None:
    reply = rest.get("agents", query={"labelSelector": selector})
    assert (reply.code, reply.json["reason"]) == (400, "BadRequest")
    assert reply.json["message"].startswith("labelSelector ")


def test_the_longest_label_selector_is_read() -> None:
    parts = [f"key-{number} in ({','.join(['v'] * 20)})" for number in range(MOST_REQUIREMENTS)]
    assert len(read_labels(",".join(parts))) == MOST_REQUIREMENTS


@pytest.mark.req("NOD-470")
def test_field_selectors_of_namespace_and_reason(rest: Rest) -> None:
    rest.agent()
    rest.run("r", deadline="1m")
    rest.world.clock.advance(61)
    rest.world.settle()
    for selector, count in (
        ("metadata.namespace=web", 1),
        ("metadata.namespace!=web", 0),
        ("status.reason=DeadlineExceeded", 1),
        ("status.reason=", 0),
    ):
        page = rest.get("agentruns", query={"fieldSelector": selector}).json
        assert len(page["items"]) == count, selector


class Counted(MemoryStore):
    """A store that counts the rows of objects that are read."""

    rows_read = 0

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        self.rows_read += sum(key.pk.startswith("obj#") for key in keys)
        return super().get(keys)

    def query(self, pk: str, prefix: str = "", **more: Any) -> Page:
        page = super().query(pk, prefix, **more)
        self.rows_read += len(page.rows) if pk.startswith("obj#") else 0
        return page


def test_one_object_by_its_name_is_one_read() -> None:
    store = Counted()
    rest = Rest(store=store)
    for number in range(30):
        rest.agent(f"a{number:02d}")
    position = rest.get("agents").json["metadata"]["resourceVersion"]
    one = {"fieldSelector": "metadata.name=a07"}
    watch = {**one, "watch": "true", "timeoutSeconds": "0"}
    for query, rows in ((one, 1), (watch, 1), ({**watch, "resourceVersion": position}, 2)):
        store.rows_read = 0
        reply = rest.get("agents", query=query)
        assert '"name":"a07"' in reply.text
        assert '"name":"a08"' not in reply.text
        assert store.rows_read <= rows
    for nobody in ("none", "A B", "", "a07,metadata.name=a08", "a07,status.phase=x"):
        assert rest.get("agents", query={"fieldSelector": f"metadata.name={nobody}"}).json["items"] == []
    both = {"fieldSelector": "metadata.name==a07,metadata.name!=a08", "limit": "1"}
    listed = rest.get("agents", query=both).json
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a07"]
    assert "continue" not in listed["metadata"]
