"""Whatever is stored can be read: an object that no answer could carry is refused when it comes."""

import json
from typing import Any

import pytest
from nodus_core.resources.document import MAX_BODY
from nodus_core.resources.manifest import MOST_SPEC
from nodus_core.resources.metadata import MOST_ANNOTATIONS

from functions.api.mcp.server import Connection
from tests.unit.api.rest import API, APPLY, Context, Rest, manifest

TEXTS = {"letters": "x", "umlauts": "ä", "emoji": "😀", "quotes": '"', "controls": "\x01"}


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


def environment(letter: str, most: int) -> dict[str, Any]:
    """The largest Environment of one letter whose spec has at most so many bytes as JSON."""
    spec: dict[str, Any] = {"version": "v1", "grader": {"image": "i", "command": "c"}, "splits": {"test": []}}

    def size() -> int:
        return len(json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode())

    escaped = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    while True:
        spec["splits"]["test"].append({"id": f"t{len(spec['splits']['test'])}", "prompt": ""})
        fits = min((most - size()) // escaped, 262_144 // len(letter.encode()))
        if fits <= 0:
            spec["splits"]["test"].pop()
            return spec
        spec["splits"]["test"][-1]["prompt"] = letter * fits


def sent(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("word", TEXTS)
def test_the_largest_object_is_stored_shown_listed_watched_and_changed(rest: Rest, word: str) -> None:
    letter = TEXTS[word]
    body = manifest("Environment", "e", environment(letter, MOST_SPEC))
    notes = letter * ((MOST_ANNOTATIONS - 4) // len(letter.encode()))
    body["metadata"]["annotations"] = {"note": notes}
    if len(sent(body)) > MAX_BODY:
        body["metadata"].pop("annotations")
    made = rest.call("PATCH", "environments/e", sent(body), kind=APPLY)
    assert made.code == 201, made.text[:500]
    patched = rest.patch("environments/e", {"metadata": {"annotations": {"note": notes}}})
    assert patched.code == 200
    position = rest.get("environments", query={"limit": "1"}).json["metadata"]["resourceVersion"]
    for whole in (
        rest.get("environments/e").json,
        rest.get("environments").json["items"][0],
        json.loads(
            rest.get("environments", query={"watch": "true", "resourceVersion": position}).text.splitlines()[
                0
            ]
        )["object"],
    ):
        assert whole["spec"] == body["spec"]
        assert whole["metadata"]["annotations"] == {"note": notes}


@pytest.mark.parametrize("word", TEXTS)
def test_a_larger_one_is_refused_with_its_size(rest: Rest, word: str) -> None:
    commits, texts = rest.commits, len(rest.world.payloads.objects)
    body = manifest("Environment", "e", environment(TEXTS[word], MOST_SPEC + 400))
    for reply in (
        rest.call("PATCH", "environments/e", sent(body), kind=APPLY),
        rest.post("environments", sent(body)),
    ):
        assert (reply.code, reply.json["reason"], reply.fields) == (413, "PayloadTooLarge", ["spec"])
        assert f"{MOST_SPEC:,}" in reply.json["message"]
    assert (rest.commits, len(rest.world.payloads.objects)) == (commits, texts)


def test_runs_with_long_notes_are_answered_without_them(rest: Rest) -> None:
    items = [manifest("AgentRun", f"r{n}", {"agent": "hello-agent", "input": "x"}) for n in range(19)]
    for item in items:
        item["metadata"]["annotations"] = {"note": "ä" * 130_000}
    body = sent({"apiVersion": API, "kind": "AgentRunList", "items": items})
    reply = rest.post("agentruns", body, headers={"idempotency-key": "k"})
    assert reply.code == 201
    assert len(reply.json["items"]) == 19
    assert all("annotations" not in run["metadata"] for run in reply.json["items"])
    assert len(rest.get("agentruns/r0").json["metadata"]["annotations"]["note"]) == 130_000


def test_a_tool_says_of_what_is_too_large_for_it_how_to_read_it(rest: Rest) -> None:
    body = manifest("Environment", "e", environment('"', MOST_SPEC))
    assert rest.call("PATCH", "environments/e", sent(body), kind=APPLY).code == 201
    connection = Connection(rest.gate, {"authorization": f"Bearer {rest.key}"}, Context())
    given = {"kind": "Environment", "name": "e", "project": "web"}
    result = connection.call("get", given)
    assert len(result.model_dump_json()) * 4 / 3 <= 6 * 1024 * 1024
    assert result.is_error
    assert "too large" in result.content[0].text  # type: ignore[union-attr]
    small = connection.call("get", {"kind": "Agent", "name": "hello-agent", "project": "web"})
    assert small.structured_content is not None
