"""Commits on builds of images, on every store: what each writes, when it refuses, and that each stays due (decision 29)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from nodus_core.journal.image_builds import GRACE, left, superseded, wanted
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import DUE_SHARDS
from nodus_core.journal.objects import projection, versioned
from nodus_core.journal.store import Store
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.image_builds import ImageBuild, LeftImages
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.testing.clock import CountingIds

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
KEY = ObjectKey("acme", "web", "EnvironmentImage", "tools")
BUILD = ImageBuild("uid-1", KEY, "uid", "base@sha256:0", Inline("true"), NOW)


@pytest.fixture
def journal(store: Store) -> Journal:
    return Journal(store, CountingIds())


@pytest.fixture
def obj(journal: Journal) -> Object:
    """One that waits for its first build."""
    made = versioned(Object(KEY, "uid", 0, 1, Inline("{}"), NOW, {"build": "uid-1", "builds": 1}), NOW)
    journal.objects.create(made, NOW, wanted(BUILD, NOW))
    return made


def due(journal: Journal, at: datetime) -> list[tuple[str, str]]:
    return [found for shard in DUE_SHARDS for found in journal.due(shard, at)]


@pytest.mark.req("NODQ-104")
def test_a_build_is_due_from_its_objects_commit_until_it_is_settled(journal: Journal, obj: Object) -> None:
    builds = journal.image_builds
    assert due(journal, NOW) == [("build", "uid-1")]
    assert journal.image_build("uid-1") == BUILD
    builds.ask(BUILD, 1, NOW)
    assert due(journal, NOW) == []
    asked = replace(BUILD, tries=1, asked_at=NOW)
    assert journal.image_build("uid-1") == asked
    with pytest.raises(ConditionFailed):
        builds.ask(BUILD, 1, LATER)  # somebody has asked since it was read
    builds.ask(asked, 1, LATER)
    asked = replace(asked, asked_at=LATER)
    builds.note(asked, "project:1", LATER)
    with pytest.raises(ConditionFailed):
        builds.note(asked, "project:2", LATER)
    with pytest.raises(ConditionFailed):
        builds.ask(asked, 1, LATER)
    noted = replace(asked, build="project:1")
    builds.wait(noted, LATER)
    assert due(journal, LATER) == []
    assert due(journal, LATER + timedelta(minutes=1)) == [("build", "uid-1")]
    done = versioned(replace(obj, status={"state": "Completed", "builds": 1}), LATER)
    with pytest.raises(ConditionFailed):
        builds.settle(noted, projection(done, LATER, over=obj.version + 1))
    builds.settle(noted, projection(done, LATER, over=obj.version))
    assert due(journal, LATER + GRACE) == []
    found = journal.object(KEY)
    assert found is not None
    assert found.status == {"state": "Completed", "builds": 1}


def test_an_unwanted_build_is_noted_and_dropped_and_neither_asked_for_nor_settled(
    journal: Journal, obj: Object
) -> None:
    builds = journal.image_builds
    builds.ask(BUILD, 1, NOW)
    asked = replace(BUILD, tries=1, asked_at=NOW)
    new = versioned(replace(obj, status={"build": "uid-2", "builds": 2}), NOW)
    second = replace(BUILD, id="uid-2")
    journal.objects.replace(obj, new, NOW, superseded("uid-1", NOW), wanted(second, NOW))
    assert sorted(due(journal, NOW)) == [("build", "uid-1"), ("build", "uid-2")]
    with pytest.raises(ConditionFailed):
        builds.ask(asked, 1, NOW)
    with pytest.raises(ConditionFailed):
        builds.wait(asked, NOW)
    with pytest.raises(ConditionFailed):
        builds.settle(asked, projection(new, NOW, over=new.version))
    builds.note(asked, "project:1", NOW)
    with pytest.raises(ConditionFailed):
        builds.drop(asked)  # it has an id since, and may run
    builds.drop(replace(asked, build="project:1"))
    assert journal.image_build("uid-1") is None
    assert journal.image_build("uid-2") == second


def test_what_a_deleted_image_leaves_is_looked_at_once_by_one_and_forgotten(
    journal: Journal, obj: Object
) -> None:
    journal.objects.remove(obj, NOW, superseded("uid-1", NOW), left(obj, NOW))
    assert due(journal, NOW) == [("build", "uid-1")]
    assert ("images", "uid") in due(journal, NOW + GRACE)
    note = LeftImages(KEY, "uid")
    assert journal.left_images("uid") == note
    passed = ("AgentRun", "hello-run")
    journal.image_builds.look_on(note, passed, LATER + GRACE)
    assert journal.left_images("uid") == replace(note, passed=passed)
    with pytest.raises(ConditionFailed):
        journal.image_builds.look_on(note, passed, LATER + GRACE)
    journal.image_builds.look_on(replace(note, passed=passed), ("Sandbox", "mine"), LATER + GRACE)
    journal.image_builds.forget(note)
    assert journal.left_images("uid") is None
