"""Every limit of what a person writes: taken at the limit, refused one beyond, by the field, with nothing stored.

docs/limits.md shows them all; the second half holds the page to the code.
"""

import importlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from nodus_core.conversations.pinning import LATEST_DEADLINE
from nodus_core.conversations.promises import LONGEST_KEY as LONGEST_IDEMPOTENCY_KEY
from nodus_core.resources import (
    addresses,
    agent,
    agentgroup,
    connection,
    document,
    endpoint,
    environment,
    fields,
    inference_source,
    metadata,
    secret,
    workspace,
)
from nodus_core.resources.resolution import LARGEST_EXIT_CODE, LONGEST_STEP
from nodus_core.resources.selectors import LONGEST_SELECTOR

from functions.api.call import LARGEST_PAGE
from tests.unit.api.rest import Reply, Rest
from tests.unit.api.rest import manifest as written

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Limit:
    """The field that a refusal names, a spec that just fits, and one that does not any more."""

    field: str
    fits: Mapping[str, Any]
    beyond: Mapping[str, Any]
    code: int = 422

    def __str__(self) -> str:
        return self.field


def of_bytes(name: str, most: int) -> Limit:
    """A text of so many bytes of UTF-8, in letters of two bytes."""
    return Limit(f"spec.{name}", {name: "é" * (most // 2)}, {name: "é" * (most // 2) + "x"}, 413)


def counted(name: str, most: int) -> Limit:
    return Limit(f"spec.{name}", {name: most}, {name: most + 1})


def folder(size: int) -> str:
    """An absolute folder of so many bytes, none of whose parts is too long."""
    return (("/" + "x" * 99) * 20)[:size]


def host(size: int) -> str:
    """A host name of so many characters."""
    name = ".".join(["x" * 60] * 4) + ".example"
    return "x" * (size - len(name)) + name


def variables(size: int) -> dict[str, Any]:
    """Variables that take so many bytes together, none of which is too long."""
    values = [workspace.MOST_VALUE - 100] * (size // workspace.MOST_VALUE)
    names = [f"V{number}" for number in range(len(values) + 1)]
    taken = sum(len(name) + 2 for name in names) + sum(values)
    return {
        "env": [
            {"name": name, "value": "x" * value}
            for name, value in zip(names, [*values, size - taken], strict=True)
        ]
    }


def secrets(count: int) -> dict[str, Any]:
    return {"secrets": [{"name": "s", "env": f"V{number}", "key": "k"} for number in range(count)]}


def allowing(*hosts: str) -> dict[str, Any]:
    return {"network": {"egress": {"policy": "AllowList", "allow": list(hosts)}}}


def model(**more: Any) -> dict[str, Any]:
    return {"model": {"access": "BYOK", "name": "m", "apiKeySecret": "s", **more}}


def git(**more: str) -> dict[str, Any]:
    return {"source": {"git": {"repo": "o/r", **more}}}


def archive(**more: Any) -> dict[str, Any]:
    return {"source": {"archive": {"url": f"{ADDRESS}a.tgz", **more}}}


def variable(name: str = "A", value: str = "") -> dict[str, Any]:
    return {"env": [{"name": name, "value": value}]}


N, ADDRESS = fields.LONGEST_NAME, "https://api.example.com/"
CENT = Decimal("0.000001")
OF_AGENTS = [
    of_bytes("system", fields.MOST_TEXT),
    of_bytes("setup", fields.MOST_SCRIPT),
    counted("maxToolCalls", agent.LARGEST_COUNT),
    counted("maxParallelAgents", agent.LARGEST_COUNT),
    Limit(
        "spec.perRunMaxCostUSD",
        {"perRunMaxCostUSD": str(fields.MOST_DOLLARS)},
        {"perRunMaxCostUSD": str(fields.MOST_DOLLARS + CENT)},
    ),
    Limit(
        "spec.model.maxTokens",
        model(maxTokens=inference_source.MOST_TOKENS),
        model(maxTokens=inference_source.MOST_TOKENS + 1),
    ),
    Limit(
        "spec.model.name",
        model(name="m" * fields.LONGEST_MODEL),
        model(name="m" * (fields.LONGEST_MODEL + 1)),
    ),
    Limit("spec.model.apiKeySecret", model(apiKeySecret="s" * N), model(apiKeySecret="s" * (N + 1))),
    Limit("spec.model.apiKeyField", model(apiKeyField="F" * N), model(apiKeyField="F" * (N + 1))),
    Limit(
        "spec.model.baseURL",
        model(baseURL=ADDRESS.ljust(addresses.LONGEST_ADDRESS, "x")),
        model(baseURL=ADDRESS.ljust(addresses.LONGEST_ADDRESS + 1, "x")),
    ),
    Limit(
        "spec.workingDir",
        {"workingDir": folder(fields.LONGEST_FOLDER)},
        {"workingDir": folder(fields.LONGEST_FOLDER + 1)},
        413,
    ),
    Limit(
        "spec.workingDir",
        {"workingDir": "/w/" + "é" * (fields.LONGEST_FOLDER_PART // 2) + "x"},
        {"workingDir": "/w/" + "é" * (fields.LONGEST_FOLDER_PART // 2 + 1)},
    ),
    Limit(
        "spec.continuity.stateDir",
        {"continuity": {"mode": "Snapshotted", "stateDir": folder(fields.LONGEST_FOLDER)}},
        {"continuity": {"mode": "Snapshotted", "stateDir": folder(fields.LONGEST_FOLDER + 1)}},
        413,
    ),
    Limit("spec.image", {"image": "i" * fields.LONGEST_IMAGE}, {"image": "i" * (fields.LONGEST_IMAGE + 1)}),
    Limit(
        "spec.source.git.repo",
        git(repo="o/".ljust(fields.LONGEST_REPOSITORY, "r")),
        git(repo="o/".ljust(fields.LONGEST_REPOSITORY + 1, "r")),
    ),
    Limit(
        "spec.source.archive.url",
        archive(url=ADDRESS.ljust(addresses.LONGEST_ADDRESS, "x")),
        archive(url=ADDRESS.ljust(addresses.LONGEST_ADDRESS + 1, "x")),
    ),
    Limit(
        "spec.source.archive.stripComponents",
        archive(stripComponents=workspace.MOST_STRIPPED),
        archive(stripComponents=workspace.MOST_STRIPPED + 1),
    ),
    Limit("spec.source.git.ref", git(ref="r" * fields.LONGEST_REF), git(ref="r" * (fields.LONGEST_REF + 1))),
    Limit(
        "spec.network.egress.allow",
        allowing(*(f"h{number}.example.com" for number in range(workspace.MOST_HOSTS))),
        allowing(*(f"h{number}.example.com" for number in range(workspace.MOST_HOSTS + 1))),
    ),
    Limit(
        "spec.network.egress.allow",
        allowing(*[host(N)] * 16, "x" * 23 + ".example"),
        allowing(*[host(N)] * 16, "x" * 24 + ".example"),
        413,
    ),
    Limit("spec.network.egress.allow[0]", allowing(host(N)), allowing(host(N + 1))),
    Limit("spec.env[0].name", variable("V" * N), variable("V" * (N + 1))),
    Limit(
        "spec.env[0].value",
        variable(value="é" * (workspace.MOST_VALUE // 2)),
        variable(value="é" * (workspace.MOST_VALUE // 2) + "x"),
        413,
    ),
    Limit(
        "spec.env",
        {"env": [{"name": f"V{n}", "value": ""} for n in range(workspace.MOST_VARIABLES)]},
        {"env": [{"name": f"V{n}", "value": ""} for n in range(workspace.MOST_VARIABLES + 1)]},
    ),
    Limit("spec.env", variables(workspace.MOST_ENVIRONMENT), variables(workspace.MOST_ENVIRONMENT + 1), 413),
    Limit("spec.secrets", secrets(workspace.MOST_VARIABLES), secrets(workspace.MOST_VARIABLES + 1)),
]
OF_RUNS = [
    of_bytes("input", fields.MOST_TEXT),
    Limit(
        "spec.deadline",
        {"deadline": f"{LATEST_DEADLINE.days}d"},
        {"deadline": f"{LATEST_DEADLINE.days}d1s"},
    ),
]
OF_BUDGETS = [
    Limit(
        "spec.limitUSD",
        {"limitUSD": str(fields.MOST_DOLLARS)},
        {"limitUSD": str(fields.MOST_DOLLARS + CENT)},
    ),
]
OF_SECRETS = [
    Limit(
        "spec.data",
        {"data": {f"F{number}": "x" for number in range(secret.MOST_FIELDS)}},
        {"data": {f"F{number}": "x" for number in range(secret.MOST_FIELDS + 1)}},
    ),
    Limit(
        "spec.data",
        {"data": {"F": "x" * (secret.MOST_BYTES - len('{"F":""}'))}},
        {"data": {"F": "x" * (secret.MOST_BYTES - len('{"F":""}') + 1)}},
        413,
    ),
    Limit(f"spec.data.{ascii('F' * 80)[1:-1]}", {"data": {"F" * N: "x"}}, {"data": {"F" * (N + 1): "x"}}),
]
LABEL = fields.LONGEST_LABEL


def grouped(**limits: int) -> dict[str, Any]:
    return {"agent": "hello-agent", "limits": limits}


def evaluated(**more: Any) -> dict[str, Any]:
    return {"agent": "hello-agent", "evaluation": {"environment": {"name": "e", "version": "1"}, **more}}


def published(splits: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": "1", "grader": {"image": "g", "command": "true"}, "splits": splits, **more}


def tasks(count: int = 1, **more: Any) -> list[dict[str, Any]]:
    return [{"id": f"t{number}", "prompt": "p", **more} for number in range(count)]


def reading(*repositories: str) -> dict[str, Any]:
    return {"type": "GitHub", "github": {"installationId": 1, "repositories": list(repositories)}}


OF_GROUPS = [
    Limit(
        "spec.limits.maxActive",
        grouped(maxActive=agentgroup.MOST_ACTIVE),
        grouped(maxActive=agentgroup.MOST_ACTIVE + 1),
    ),
    Limit(
        "spec.limits.maxPending",
        grouped(maxPending=agentgroup.MOST_PENDING),
        grouped(maxPending=agentgroup.MOST_PENDING + 1),
    ),
    Limit("spec.evaluation", evaluated(tasks=50, repetitions=2), evaluated(tasks=51, repetitions=2)),
    Limit("spec.evaluation.timeout", evaluated(timeout="24h"), evaluated(timeout="24h1s")),
]
OF_ENVIRONMENTS = [
    Limit(
        "spec.splits.test",
        published({"test": tasks(environment.MOST_TASKS, answer="a")}),
        published({"test": tasks(environment.MOST_TASKS + 1, answer="a")}),
    ),
    Limit(
        "spec.splits",
        published({f"s{number}": tasks() for number in range(environment.MOST_SPLITS)}),
        published({f"s{number}": tasks() for number in range(environment.MOST_SPLITS + 1)}),
    ),
    Limit(
        "spec.splits.test[0].answer",
        published({"test": tasks(answer="a" * environment.MOST_ANSWER)}),
        published({"test": tasks(answer="a" * (environment.MOST_ANSWER + 1))}),
        413,
    ),
]
OF_ENDPOINTS = [
    Limit(
        "spec.apiKeys",
        {**model(), "apiKeys": [f"k{number}" for number in range(endpoint.MOST_KEYS)]},
        {**model(), "apiKeys": [f"k{number}" for number in range(endpoint.MOST_KEYS + 1)]},
    ),
]
OF_CONNECTIONS = [
    Limit(
        "spec.github.repositories",
        reading(*(f"o/r{number}" for number in range(connection.MOST_REPOSITORIES))),
        reading(*(f"o/r{number}" for number in range(connection.MOST_REPOSITORIES + 1))),
    ),
]
OF_LABELS = [
    Limit(
        "metadata.labels",
        {f"l{number}": "" for number in range(metadata.MOST_LABELS)},
        {f"l{number}": "" for number in range(metadata.MOST_LABELS + 1)},
    ),
    Limit("metadata.labels.a", {"a": "v" * LABEL}, {"a": "v" * (LABEL + 1)}),
    Limit(f"metadata.labels.{'k' * (LABEL + 1)}", {"k" * LABEL: ""}, {"k" * (LABEL + 1): ""}),
    Limit(f"metadata.labels.{'p' * 80}", {"p" * N + "/k": ""}, {"p" * (N + 1) + "/k": ""}),
]


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    assert made.post("environments", written("Environment", "e", published({"test": tasks(50)}))).code == 201
    return made


def stored(rest: Rest) -> tuple[int, int, int]:
    return rest.commits, len(rest.world.payloads.objects), len(rest.world.vault.places)


def is_refused(refused: Reply, limit: Limit) -> None:
    reason = "PayloadTooLarge" if limit.code == 413 else "Invalid"
    assert (refused.code, refused.json["reason"], refused.fields) == (limit.code, reason, [limit.field])
    assert refused.json["kind"] == "Status"


@pytest.mark.req("NOD-478", "NOD-589", "NODQ-40")
@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        *(("Agent", limit) for limit in OF_AGENTS),
        *(("AgentRun", limit) for limit in OF_RUNS),
        *(("Budget", limit) for limit in OF_BUDGETS),
        *(("Secret", limit) for limit in OF_SECRETS),
        *(("AgentGroup", limit) for limit in OF_GROUPS),
        *(("Environment", limit) for limit in OF_ENVIRONMENTS),
        *(("Endpoint", limit) for limit in OF_ENDPOINTS),
        *(("Connection", limit) for limit in OF_CONNECTIONS),
    ],
    ids=str,
)
def test_a_field_is_taken_at_its_limit_and_refused_beyond(rest: Rest, kind: str, limit: Limit) -> None:
    whole = {"agent": "hello-agent", "input": "x"} if kind == "AgentRun" else {}
    place = f"{kind.lower()}s"
    before = stored(rest)
    is_refused(rest.post(place, written(kind, "large", {**whole, **limit.beyond})), limit)
    is_refused(rest.apply(f"{place}/large", written(kind, "large", {**whole, **limit.beyond})), limit)
    assert stored(rest) == before
    assert rest.get(f"{place}/large").code == 404
    assert rest.post(place, written(kind, "large", {**whole, **limit.fits})).code == 201
    shown = rest.get(f"{place}/large").json["spec"]
    kept = {name: value for name, value in limit.fits.items() if name not in ("deadline", "data")}
    assert {name: shown[name] for name in kept} == kept


@pytest.mark.req("NOD-478")
@pytest.mark.parametrize("limit", OF_LABELS, ids=str)
def test_labels_are_taken_at_their_limits_and_refused_beyond(rest: Rest, limit: Limit) -> None:
    body = written("Agent", "labelled", {})
    before = stored(rest)
    body["metadata"]["labels"] = limit.beyond
    is_refused(rest.post("agents", body), limit)
    assert stored(rest) == before
    body["metadata"]["labels"] = limit.fits
    assert rest.post("agents", body).json["metadata"]["labels"] == limit.fits


@pytest.mark.req("NOD-478")
def test_annotations_are_taken_at_their_limit_and_refused_beyond(rest: Rest) -> None:
    body, before = written("Agent", "noted", {}), stored(rest)
    body["metadata"]["annotations"] = {"a": "é" * (metadata.MOST_ANNOTATIONS // 2)}
    is_refused(rest.post("agents", body), Limit("metadata.annotations", {}, {}))
    assert stored(rest) == before
    body["metadata"]["annotations"] = {"ab": "é" * (metadata.MOST_ANNOTATIONS // 2 - 1)}
    assert rest.post("agents", body).code == 201


@pytest.mark.req("NODQ-40")
@pytest.mark.parametrize("kind", ["Agent", "AgentRun", "Budget", "Secret"])
def test_a_name_has_at_most_253_characters(rest: Rest, kind: str) -> None:
    specs = {"AgentRun": {"agent": "hello-agent", "input": "x"}, "Budget": {"limitUSD": "1"}}
    spec = specs.get(kind, {"data": {"F": "x"}} if kind == "Secret" else {})
    place, before = f"{kind.lower()}s", stored(rest)
    refused = rest.post(place, written(kind, "n" * (N + 1), spec))
    assert (refused.code, refused.fields) == (422, ["metadata.name"])
    assert str(N) in refused.json["message"]
    assert stored(rest) == before
    assert rest.post(place, written(kind, "n" * N, spec)).code == 201
    assert rest.get(f"{place}/{'n' * N}").code == 200


@pytest.mark.req("NODQ-55", "NOD-590")
@pytest.mark.parametrize(
    ("field", "fits", "beyond"),
    [
        ("requestKey", "k" * fields.LONGEST_KEY, "k" * (fields.LONGEST_KEY + 1)),
        ("step", "s" * LONGEST_STEP, "s" * (LONGEST_STEP + 1)),
        ("result.exitCode", LARGEST_EXIT_CODE, LARGEST_EXIT_CODE + 1),
    ],
)
def test_a_resolution_is_read_at_its_limits_and_refused_beyond(
    rest: Rest, field: str, fits: Any, beyond: Any
) -> None:
    rest.run()
    before = stored(rest)

    def says(value: Any) -> Reply:
        body: dict[str, Any] = {"step": "s", "outcome": "Happened", "requestKey": "k", "result": {}}
        holder = body["result"] if field.startswith("result.") else body
        holder[field.removeprefix("result.")] = value
        return rest.post("agentruns/hello-run/resolution", body)

    is_refused(says(beyond), Limit(field, {}, {}))
    assert (says(fits).code, says(fits).json["reason"]) == (404, "NotFound")  # it has no such step
    assert stored(rest) == before


def test_a_body_is_read_up_to_its_size_and_depth(rest: Rest) -> None:
    text = json.dumps(written("Agent", "padded", {}))
    assert rest.post("agents", text + " " * (document.MAX_BODY - len(text) + 1)).code == 413
    assert rest.get("agents/padded").code == 404
    assert rest.post("agents", text + " " * (document.MAX_BODY - len(text))).code == 201
    # The body is one level, and its spec another.
    at, over = (
        json.dumps(written("Agent", "deep", {"xyzzy": 0})).replace("0", "[" * depth + "]" * depth)
        for depth in (document.MAX_DEPTH - 2, document.MAX_DEPTH)
    )
    assert (rest.post("agents", at).code, rest.post("agents", over).code) == (422, 400)


def test_what_stands_in_headers_and_queries_is_bounded(rest: Rest) -> None:
    key = "k" * LONGEST_IDEMPOTENCY_KEY
    body, before = written("Agent", "keyed", {}), stored(rest)
    refused = rest.post("agents", body, headers={"Idempotency-Key": key + "k"})
    assert (refused.code, refused.json["reason"], stored(rest)) == (400, "BadRequest", before)
    assert rest.post("agents", body, headers={"Idempotency-Key": key}).code == 201
    assert rest.get("agents", query={"limit": str(LARGEST_PAGE)}).code == 200
    assert rest.get("agents", query={"limit": str(LARGEST_PAGE + 1)}).json["reason"] == "BadRequest"
    wanted = "metadata.name=".ljust(LONGEST_SELECTOR, "x")
    assert rest.get("agents", query={"fieldSelector": wanted}).json["items"] == []
    assert rest.get("agents", query={"fieldSelector": wanted + "x"}).json["reason"] == "BadRequest"


# --- the page ---

PAGE = (ROOT / "docs" / "limits.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "`nodus_core." in line]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_page_shows_what_the_code_says(row: str) -> None:
    named = re.findall(r"`(nodus_core(?:\.\w+)+)\.([A-Z_]+)`", row)
    assert named
    for module, name in named:
        value = getattr(importlib.import_module(module), name)
        plain = value.days if isinstance(value, timedelta) else value
        shown = plain if isinstance(plain, str) else f"{plain:,}"
        assert re.search(rf"(?<![\d,.]){re.escape(shown)}(?![\d,]*\d)", row), f"{name} is {shown}"


def test_the_page_names_every_limit_that_is_tested_here() -> None:
    for limit in (*OF_AGENTS, *OF_RUNS, *OF_BUDGETS, *OF_GROUPS, *OF_ENDPOINTS, *OF_CONNECTIONS):
        field = re.sub(r"\[\d+\]", "[]", limit.field)
        assert f"`{field}`" in PAGE, field


@pytest.mark.req("NOD-084")
def test_the_page_leads_to_durable_execution() -> None:
    (target,) = re.findall(r"\[Durable execution\]\(([^)]+)\)", PAGE)
    page = (ROOT / "docs" / target).read_text()
    assert "survives" in page.splitlines()[0]
