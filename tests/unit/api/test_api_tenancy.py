"""Organizations and projects as resources, from the wire."""

from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.images import Images
from nodus_core.conversations.pinning import pinned
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.batches import Staged
from nodus_core.journal.keys import project_key
from nodus_core.journal.store import Page, Transaction
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.kernel.objects import Batch
from nodus_core.resources.manifest import read_manifest
from nodus_core.testing.memory_store import MemoryStore

from tests.unit.api.rest import Rest, manifest

V1 = "/apis/nodus.dev/v1"


@pytest.fixture
def rest() -> Rest:
    return Rest()


def new_project(rest: Rest, name: str, **spec: Any) -> Any:
    return rest.post(f"{V1}/projects", manifest("Project", name, spec))


@pytest.mark.req("NOD-003", "NOD-004")
def test_only_the_own_organization_is_shown(rest: Rest) -> None:
    rest.directory.create_organization("rival")
    (own,) = rest.get(f"{V1}/organizations").json["items"]
    assert own == rest.get(f"{V1}/organizations/acme").json
    assert (own["kind"], own["metadata"]["name"]) == ("Organization", "acme")
    assert "namespace" not in own["metadata"]
    for foreign in ("rival", "nobody"):
        refused = rest.get(f"{V1}/organizations/{foreign}")
        assert (refused.code, refused.json["details"]) == (404, {"name": foreign, "kind": "Organization"})


def test_an_organization_can_be_renamed_and_no_other_one_be_made(rest: Rest) -> None:
    rest.directory.create_organization("rival")
    renamed = rest.patch(f"{V1}/organizations/acme", {"spec": {"displayName": "Acme, Inc."}})
    assert (renamed.code, renamed.json["spec"]) == (200, {"displayName": "Acme, Inc."})
    stored = rest.store.rows()
    for name in ("rival", "new"):
        refused = rest.apply(f"{V1}/organizations/{name}", manifest("Organization", name, {}))
        assert refused.code == 404
    assert rest.post(f"{V1}/organizations", manifest("Organization", "new", {})).code == 405
    assert rest.call("DELETE", f"{V1}/organizations/acme").code == 405
    assert {key for key in rest.store.rows() if not key.pk.startswith("rate#")} == {
        key for key in stored if not key.pk.startswith("rate#")
    }


@pytest.mark.req("NOD-003")
def test_a_project_lives_from_its_creation_to_its_deletion(rest: Rest) -> None:
    made = new_project(rest, "new", displayName="The new one")
    assert made.code == 201
    assert rest.agent("a", system="x").code == 201
    assert rest.apply("agents/a", manifest("Agent", "a", {}), project="new").code == 201
    names = [item["metadata"]["name"] for item in rest.get(f"{V1}/projects").json["items"]]
    assert names == ["lab", "new", "web"]
    changed = rest.patch(
        f"{V1}/projects/new", {"metadata": {"labels": {"team": "red"}}, "spec": {"displayName": None}}
    )
    assert (changed.json["spec"], changed.json["metadata"]["labels"]) == ({}, {"team": "red"})
    assert new_project(rest, "new").json["reason"] == "AlreadyExists"

    full = rest.call("DELETE", f"{V1}/projects/new")
    assert (full.code, full.json["reason"]) == (409, "Conflict")
    assert "agents a" in full.json["message"]
    assert (
        rest.apply("agents/b", manifest("Agent", "b", {}), project="new").code == 201
    )  # it is open as before
    for name in ("a", "b"):
        assert rest.call("DELETE", f"agents/{name}", project="new").code == 200
    gone = rest.call("DELETE", f"{V1}/projects/new")
    assert (gone.code, gone.json["status"]) == (200, "Success")
    assert rest.get(f"{V1}/projects/new").code == 404
    assert rest.call("DELETE", f"{V1}/projects/new").code == 404


def test_a_refused_deletion_names_a_few_objects_of_each_kind(rest: Rest) -> None:
    for number in range(7):
        rest.agent(f"a{number}")
    rest.apply("budgets/most", manifest("Budget", "most", {"limitUSD": "1"}))
    message = rest.call("DELETE", f"{V1}/projects/web").json["message"]
    assert "agents a0, a1, a2, a3, a4, …" in message
    assert "budgets most" in message


def test_nothing_is_made_in_a_project_once_it_is_deleted_whoever_still_knows_it(rest: Rest) -> None:
    assert rest.get("agents", project="lab").code == 200  # this process believes in it for half a minute
    rest.agent()
    assert rest.call("DELETE", f"{V1}/projects/lab").code == 200
    for late in (
        rest.apply("agents/a", manifest("Agent", "a", {}), project="lab"),
        rest.post("secrets", manifest("Secret", "s", {"data": {"k": "v"}}), project="lab"),
        rest.post(
            "agentruns", manifest("AgentRun", "r", {"agent": "claude-assistant", "input": "x"}), project="lab"
        ),
    ):
        assert late.code in (404, 409)
        assert late.json["reason"] in ("Conflict", "NotFound")
    rest.world.clock.advance(31)
    assert rest.get("agents", project="lab").code == 404
    assert new_project(rest, "lab").code == 201
    assert rest.get("agents", project="lab").json["items"] == []
    assert rest.apply("agents/a", manifest("Agent", "a", {}), project="lab").code == 201


def test_a_deletion_that_died_leaves_the_project_closed_and_the_next_one_decides(rest: Rest) -> None:
    rest.agent("a")
    rest.directory.access.close_project("acme", "web", "word")
    late = rest.agent("b")
    assert (late.code, late.json["reason"]) == (409, "Conflict")
    assert "being deleted" in late.json["message"]
    assert rest.agent("a", system="changed").code == 200  # what is there can be changed, and removed
    assert rest.call("DELETE", f"{V1}/projects/web").code == 409
    assert rest.agent("b").code == 201
    assert "closing" not in rest.store.rows()[project_key("acme", "web")]


def test_of_two_deletions_one_that_reopens_spares_the_other_no_look(rest: Rest) -> None:
    access = rest.directory.access
    access.close_project("acme", "lab", "first")
    access.close_project("acme", "lab", "second")
    access.reopen_project("acme", "lab", "first")  # which is not its to reopen any more
    assert rest.apply("agents/a", manifest("Agent", "a", {}), project="lab").code == 409


@pytest.mark.parametrize(
    ("body", "code", "fields"),
    [
        (manifest("Project", "a.b", {}), 422, ["metadata.name"]),
        (manifest("Project", "nodus", {}), 422, ["metadata.name"]),
        (manifest("Project", "p", {"displayName": "a\nb"}), 422, ["spec.displayName"]),
        (manifest("Project", "p", {"displayName": "x" * 129}), 422, ["spec.displayName"]),
        (manifest("Project", "p", {"owner": "me"}), 422, ["spec.owner"]),
        (
            {**manifest("Project", "p", {}), "metadata": {"name": "p", "namespace": "web"}},
            422,
            ["metadata.namespace"],
        ),
    ],
)
def test_what_is_no_project_is_refused(
    rest: Rest, body: dict[str, Any], code: int, fields: list[str]
) -> None:
    stored = rest.commits
    refused = rest.post(f"{V1}/projects", body)
    assert (refused.code, refused.fields) == (code, fields)
    assert rest.commits == stored


@pytest.mark.req("FLD-16")
def test_a_project_that_was_made_is_answered_again(rest: Rest) -> None:
    key = {"idempotency-key": "k"}
    first = rest.post(f"{V1}/projects", manifest("Project", "p", {"displayName": "P"}), headers=key)
    again = rest.post(f"{V1}/projects", manifest("Project", "p", {"displayName": "P"}), headers=key)
    assert (again.code, again.json, again.headers["idempotent-replayed"]) == (201, first.json, "true")


def test_a_deletion_that_is_rehearsed_says_what_it_would_and_closes_nothing(rest: Rest) -> None:
    rest.agent("a")
    assert rest.call("DELETE", f"{V1}/projects/web", query={"dryRun": "All"}).code == 409
    assert rest.call("DELETE", f"{V1}/projects/lab", query={"dryRun": "All"}).code == 200
    assert rest.apply("agents/a", manifest("Agent", "a", {}), project="lab").code == 201


def test_no_batch_is_made_in_a_project_that_is_being_deleted(rest: Rest) -> None:
    rest.agent()
    rest.directory.access.close_project("acme", "web", "word")
    spec = {"agent": "hello-agent", "input": "x"}
    items = [manifest("AgentRun", f"r{number}", spec) for number in (1, 2)]
    body = {"apiVersion": "nodus.dev/v1", "kind": "AgentRunList", "items": items}
    refused = rest.post("agentruns", body, headers={"idempotency-key": "k"})
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert "being deleted" in refused.json["message"]
    assert rest.get("agentruns").json["items"] == []


def test_a_project_with_a_run_behind_runs_that_nobody_sees_yet_is_not_deleted(rest: Rest) -> None:
    rest.agent()
    rest.run("zebra")
    stage_runs(rest, [f"a{number}" for number in range(7)])
    refused = rest.call("DELETE", f"{V1}/projects/web")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert "agentruns zebra" in refused.json["message"]


def test_a_project_in_which_runs_are_being_created_together_is_not_deleted(rest: Rest) -> None:
    rest.agent()
    staged = stage_runs(rest, [f"a{number}" for number in range(7)])
    rest.call("DELETE", "agents/hello-agent")
    for query in ({}, {"dryRun": "All"}):
        held = rest.call("DELETE", f"{V1}/projects/web", query=query)
        assert (held.code, held.json["reason"]) == (409, "Conflict")
        assert "being created together" in held.json["message"]
        assert "a0" not in held.json["message"]  # nobody sees them
    rest.world.journal.batches.abort(staged, rest.world.clock.now())
    BatchKeeping(Shelf(rest.world.journal, rest.world.payloads, rest.world.clock)).finish(staged.id)
    assert rest.call("DELETE", f"{V1}/projects/web").code == 200


def stage_runs(rest: Rest, names: list[str]) -> Batch:
    """Runs of a batch whose caller is at work still."""
    world, shelf = rest.world, Shelf(rest.world.journal, rest.world.payloads, rest.world.clock)
    place, now = Place("acme", "web", "alice"), world.clock.now()
    wanted = [
        read_manifest(manifest("AgentRun", name, {"agent": "hello-agent", "input": "x"}), "AgentRun", "web")
        for name in names
    ]
    runs = [pinned(Images(shelf), place, world.ids.fresh("run"), item, now) for item in wanted]
    uids = tuple(run.object.uid for run in runs)
    batch = Batch("batch-x", "acme", "web", tuple(names), uids, now)
    world.journal.batches.open(batch)
    world.journal.batches.stage(batch, [Staged(run.object, run.conversation, run.first) for run in runs])
    return batch


class Failing(MemoryStore):
    """A store that does not answer the commit `mute`, or the first query after the commit `blind_after`."""

    mute: str | None = None
    applies = True
    blind_after: str | None = None
    _blind = False

    def commit(self, transaction: Transaction, token: str) -> None:
        is_mute = transaction.name == self.mute
        if self.applies or not is_mute:
            super().commit(transaction, token)
        self._blind = transaction.name == self.blind_after
        if is_mute:
            raise StoreUnavailable(f"{transaction.name} got no answer")

    def query(self, pk: str, prefix: str = "", **more: Any) -> Page:
        if self._blind:
            self._blind = False
            raise StoreUnavailable("no answer")
        return super().query(pk, prefix, **more)


def test_a_refused_deletion_closes_nothing(rest: Rest) -> None:
    rest.agent("a")
    stored = rest.commits
    assert rest.call("DELETE", f"{V1}/projects/web").code == 409
    assert rest.commits == stored


def test_a_deletion_that_fails_opens_the_project_again() -> None:
    store = Failing()
    rest = Rest(store=store)
    store.blind_after = "close-project"
    assert rest.call("DELETE", f"{V1}/projects/lab").code == 503
    assert rest.apply("agents/a", manifest("Agent", "a", {}), project="lab").code == 201


@pytest.mark.parametrize("applied", [True, False])
def test_a_deletion_whose_commit_has_no_answer_leaves_no_project_that_is_half_gone(applied: bool) -> None:
    store = Failing()
    rest = Rest(store=store)
    store.mute, store.applies = "remove-object", applied
    assert rest.call("DELETE", f"{V1}/projects/lab").code == 503
    late = rest.apply("agents/a", manifest("Agent", "a", {}), project="lab")
    if applied:  # it is gone, and stays empty
        assert late.code in (404, 409)
        assert rest.get(f"{V1}/projects/lab").code == 404
    else:
        assert late.code == 201


def test_a_project_that_is_being_deleted_says_so(rest: Rest) -> None:
    access = rest.directory.access
    access.close_project("acme", "lab", "word")
    for shown in (
        rest.get(f"{V1}/projects/lab").json,
        next(item for item in rest.get(f"{V1}/projects").json["items"] if item["metadata"]["name"] == "lab"),
    ):
        (ready,) = shown["status"]["conditions"]
        assert (ready["type"], ready["status"], ready["reason"]) == ("Ready", "False", "Closing")
        assert "delete it again" in ready["message"]
    access.reopen_project("acme", "lab", "word")
    (ready,) = rest.get(f"{V1}/projects/lab").json["status"]["conditions"]
    assert ready["status"] == "True"
