"""Secrets over REST: values go in, and only the names of their fields come out."""

from collections.abc import Mapping
from typing import Any

import pytest
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.secrets import fields_of
from nodus_core.conversations.sweeper import Sweep, Sweeper
from nodus_core.journal.vault import VaultPlace
from nodus_core.kernel.errors import RetryableError
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.testing.memory_vault import MemoryVault

from tests.unit.api.rest import Reply, Rest, manifest

CANARY = "plum-9f31-KITE-77aa"


@pytest.fixture
def rest() -> Rest:
    return Rest()


def apply(rest: Rest, **data: str) -> Reply:
    return rest.apply("secrets/model-key", manifest("Secret", "model-key", {"data": data}))


def stored(rest: Rest, name: str = "model-key") -> Object | None:
    return rest.world.outside.object(ObjectKey("acme", "web", "Secret", name))


def values(rest: Rest, name: str = "model-key") -> Mapping[str, str]:
    """What a call with the Secret would be made with."""
    obj = stored(rest, name)
    assert obj is not None
    assert obj.value is not None
    return rest.world.vault.read(VaultPlace("acme", "web", obj.uid), obj.value.version)


def sweep(rest: Rest) -> Sweep:
    world = rest.world
    values = Reclaim(world.outside, world.vault, world.clock)
    expiry = Expiry(world.outside, world.payloads, world.clock)
    sweeper = Sweeper(world.kicks, world.task_sweep, world.pool, values, expiry, world.batches, world.builds)
    return sweeper.sweep(lambda: 20.0)


def everything_stored(rest: Rest) -> str:
    """All that is not the vault."""
    rows = [row for transaction in rest.store.commits for row in transaction.operations]
    return repr(rows) + repr(rest.world.payloads.objects)


@pytest.mark.req("NOD-465", "NODQ-101", "NOD-118")
def test_a_secret_shows_its_field_names_and_no_value(rest: Rest) -> None:
    created = rest.post("secrets", manifest("Secret", "model-key", {"data": {"B": CANARY, "A": "x"}}))
    assert created.code == 201
    assert (created.json["spec"], created.json["status"]["fields"]) == ({}, ["A", "B"])
    assert values(rest) == {"A": "x", "B": CANARY}
    read = rest.get("secrets/model-key")
    assert (read.code, read.json) == (200, created.json)
    listed = rest.get("secrets").json
    assert (listed["kind"], listed["items"]) == ("SecretList", [created.json])
    for shown in (created.text, read.text, rest.get("secrets").text, everything_stored(rest)):
        assert CANARY not in shown


@pytest.mark.req("NODQ-101")
def test_applying_the_same_values_changes_nothing_and_others_count_at_once(rest: Rest) -> None:
    first = apply(rest, KEY=CANARY)
    again = apply(rest, KEY=CANARY)
    assert (first.code, again.code, again.json) == (201, 200, first.json)
    changed = apply(rest, KEY=CANARY, OTHER="more")
    assert (changed.code, changed.json["metadata"]["generation"]) == (200, 2)
    assert changed.json["status"]["fields"] == ["KEY", "OTHER"]
    assert values(rest) == {"KEY": CANARY, "OTHER": "more"}
    assert int(changed.json["metadata"]["resourceVersion"]) > int(first.json["metadata"]["resourceVersion"])


def test_what_was_read_can_be_written_back_and_leaves_the_values_alone(rest: Rest) -> None:
    shown = apply(rest, KEY=CANARY).json
    back = rest.apply("secrets/model-key", shown)
    assert (back.code, back.json) == (200, shown)
    shown["metadata"]["labels"] = {"team": "web"}
    labelled = rest.apply("secrets/model-key", shown)
    assert (labelled.code, labelled.json["metadata"]["labels"]) == (200, {"team": "web"})
    assert labelled.json["metadata"]["generation"] == 1
    assert values(rest) == {"KEY": CANARY}


def test_a_merge_patch_names_every_field_since_none_can_be_read(rest: Rest) -> None:
    apply(rest, A="one", B="two")
    for data in ({"A": "three"}, None):
        partial = rest.patch("secrets/model-key", {"spec": {"data": data}})
        assert (partial.code, partial.fields) == (422, ["spec.data"])
        assert "B" in partial.json["message"]
    assert values(rest) == {"A": "one", "B": "two"}
    whole = rest.patch("secrets/model-key", {"spec": {"data": {"A": "three", "B": None, "C": "four"}}})
    assert (whole.code, whole.json["status"]["fields"]) == (200, ["A", "C"])
    assert values(rest) == {"A": "three", "C": "four"}
    labels = rest.patch("secrets/model-key", {"metadata": {"labels": {"a": "b"}}})
    assert (labels.code, values(rest)) == (200, {"A": "three", "C": "four"})


def test_a_change_of_another_version_than_the_stored_one_is_a_conflict(rest: Rest) -> None:
    seen = apply(rest, KEY="one").json
    apply(rest, KEY="two")
    seen["spec"] = {"data": {"KEY": "three"}}
    late = rest.apply("secrets/model-key", seen)
    assert (late.code, late.json["reason"]) == (409, "Conflict")
    assert values(rest) == {"KEY": "two"}


@pytest.mark.req("FLD-14")
@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.data"),
        ({"data": {}}, "spec.data"),
        ({"data": CANARY}, "spec.data"),
        ({"data": [CANARY]}, "spec.data"),
        ({"data": {"KEY": [CANARY]}}, "spec.data.KEY"),
        ({"data": {"KEY": ""}}, "spec.data.KEY"),
        ({"data": {"KEY": 5}}, "spec.data.KEY"),
        ({"data": {"a key": CANARY}}, "spec.data.a key"),
        ({"KEY": CANARY}, "spec.KEY"),
        ({"stringData": {"KEY": CANARY}}, "spec.stringData"),
        ({"data": {f"K{number}": CANARY for number in range(101)}}, "spec.data"),
    ],
)
def test_what_is_no_secret_is_refused_and_not_repeated(rest: Rest, spec: dict[str, Any], field: str) -> None:
    refused = rest.post("secrets", manifest("Secret", "model-key", spec))
    assert (refused.code, refused.fields) == (422, [field])
    assert CANARY not in refused.text
    assert rest.world.vault.places == {}
    assert rest.get("secrets/model-key").code == 404


def test_more_than_the_vault_holds_is_refused_with_its_size(rest: Rest) -> None:
    refused = apply(rest, KEY="x" * 65_536)
    assert (refused.code, refused.json["reason"]) == (413, "PayloadTooLarge")
    assert "65546 bytes" in refused.json["message"]
    assert apply(rest, KEY="x" * (65_536 - len('{"KEY":""}'))).code == 201


def test_a_deleted_secret_takes_its_values_with_it(rest: Rest) -> None:
    apply(rest, KEY=CANARY)
    gone = rest.call("DELETE", "secrets/model-key")
    assert (gone.code, gone.json["status"]) == (200, "Success")
    assert rest.get("secrets/model-key").code == 404
    assert rest.world.vault.places == {}
    assert rest.call("DELETE", "secrets/model-key").code == 404
    assert apply(rest, KEY="new").code == 201


@pytest.mark.req("FLD-16")
def test_an_idempotency_key_means_one_secret_and_keeps_nothing_of_it(rest: Rest) -> None:
    key = {"idempotency-key": "one"}
    body = manifest("Secret", "model-key", {"data": {"PIN": "1234"}})
    first = rest.post("secrets", body, headers=key)
    again = rest.post("secrets", body, headers=key)
    assert (again.code, again.headers["idempotent-replayed"], again.json) == (201, "true", first.json)
    assert len(rest.world.vault.places) == 1
    other = rest.post("secrets", manifest("Secret", "model-key", {"data": {"PIN": "1235"}}), headers=key)
    assert (other.code, other.json["reason"]) == (409, "IdempotencyKeyConflict")


@pytest.mark.req("FLD-14")
def test_a_name_that_is_taken_leaves_no_value_behind(rest: Rest) -> None:
    apply(rest, KEY="one")
    taken = rest.post("secrets", manifest("Secret", "model-key", {"data": {"KEY": CANARY}}))
    assert (taken.code, taken.json["reason"]) == (409, "AlreadyExists")
    assert CANARY not in repr(rest.world.vault.places)
    assert sweep(rest).reclaimed == 0


@pytest.mark.req("NOD-004", "NODQ-96")
def test_reading_and_writing_are_permissions_of_their_own(rest: Rest) -> None:
    apply(rest, KEY="one")
    reader = rest.new_key(permissions=("secrets:read",))
    agents = rest.new_key(permissions=("agents:write", "agents:read"))
    assert rest.get("secrets/model-key", key=reader).code == 200
    assert rest.call("DELETE", "secrets/model-key", key=reader).code == 403
    assert rest.get("secrets/model-key", key=agents).code == 403
    assert rest.get("secrets/model-key", project="lab").code == 404


class SickVault(MemoryVault):
    """Keeps and removes nothing while it is sick."""

    sick = True
    fault: Exception = RetryableError("no answer")

    def create(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        version = super().create(place, values)
        if self.sick:
            raise RetryableError("no answer")  # it was kept all the same
        return version

    def remove(self, place: VaultPlace) -> None:
        if self.sick:
            raise self.fault
        super().remove(place)


def test_values_whose_secret_never_came_to_be_are_removed_by_the_sweeper() -> None:
    vault = SickVault()
    rest = Rest(vault=vault)
    lost = apply(rest, KEY=CANARY)
    assert (lost.code, CANARY in lost.text) == (503, False)
    assert stored(rest) is None
    assert len(vault.places) == 1
    assert sweep(rest).reclaimed == 0  # its caller may still be at work
    rest.world.clock.advance(301)
    assert sweep(rest).reclaimed == 0  # the vault does not answer
    vault.sick = False
    rest.world.clock.advance(301)
    assert sweep(rest).reclaimed == 1
    assert vault.places == {}
    assert sweep(rest).reclaimed == 0


@pytest.mark.parametrize("fault", [RetryableError("no answer"), KeyError("nobody has thought of this")])
def test_values_that_could_not_be_removed_follow_their_secret_later(fault: Exception) -> None:
    vault = SickVault()
    vault.fault = fault
    vault.sick = False
    rest = Rest(vault=vault)
    apply(rest, KEY=CANARY)
    vault.sick = True
    assert rest.call("DELETE", "secrets/model-key").code == 200
    assert rest.get("secrets/model-key").code == 404
    assert len(vault.places) == 1
    vault.sick = False
    rest.world.clock.advance(301)
    assert sweep(rest).reclaimed == 1
    assert vault.places == {}


def test_a_secret_whose_values_were_taken_away_says_so(rest: Rest) -> None:
    apply(rest, KEY="one")
    rest.world.vault.places.clear()
    refused = apply(rest, KEY="two")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert "create it again" in refused.json["message"]


def test_the_stored_digest_is_no_plain_hash_and_differs_between_secrets(rest: Rest) -> None:
    for name in ("a", "b"):
        rest.apply(f"secrets/{name}", manifest("Secret", name, {"data": {"PIN": "1234"}}))
    one, other = stored(rest, "a"), stored(rest, "b")
    assert one is not None
    assert other is not None
    assert fields_of(one) == ("PIN",)
    assert one.value is not None
    assert other.value is not None
    assert one.value.digest != other.value.digest
    assert len(one.value.digest) == 64
