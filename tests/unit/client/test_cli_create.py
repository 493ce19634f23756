"""`nodus create KIND`: every kind that has options of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import TOKEN_OF_NEW_KEYS, FakeServer, Fault

CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        "agentgroup parallel-agents --agent parallel-agents-worker --max-active 2 --max-cost 0.60",
        "agentgroup/parallel-agents",
        "agentgroups",
        {"agent": "parallel-agents-worker", "limits": {"maxActive": 2}, "maxCostUSD": "0.60"},
    ),
    ("ag g --agent w", "agentgroup/g", "agentgroups", {"agent": "w"}),
    (
        "sandbox dev --image nodus/agent-tools --cpu 1 --memory 2 --idle-timeout 10m --ttl 24h --allow pypi.org"
        " --max-cost 5 --state-dir /workspace",
        "sandbox/dev",
        "sandboxes",
        {
            "image": "nodus/agent-tools",
            "resources": {"cpu": "1", "memory": "2"},
            "idleTimeout": "10m",
            "ttl": "24h",
            "network": {"egress": {"policy": "AllowList", "allow": ["pypi.org"]}},
            "continuity": {"mode": "Snapshotted", "stateDir": "/workspace"},
            "maxCostUSD": "5",
        },
    ),
    (
        "sandbox s --size Performance --gpu 1",
        "sandbox/s",
        "sandboxes",
        {"resources": {"cpu": "4", "memory": "8", "gpu": 1}},
    ),
    ("sandbox s --egress deny", "sandbox/s", "sandboxes", {"network": {"egress": {"policy": "Deny"}}}),
    (
        "sandbox s --size performance --env MODE=a=b --secret KEY=deploy/token",
        "sandbox/s",
        "sandboxes",
        {
            "resources": {"cpu": "4", "memory": "8"},
            "env": [{"name": "MODE", "value": "a=b"}],
            "secrets": [{"name": "deploy", "env": "KEY", "key": "token"}],
        },
    ),
    (
        "budget product-showcase --limit 5.00",
        "budget/product-showcase",
        "budgets",
        {"period": "Total", "action": "Block", "limitUSD": "5.00"},
    ),
    (
        "agent hello --system Careful --family haiku --family sonnet --max-cost 0.50 --max-tool-calls 9",
        "agent/hello",
        "agents",
        {
            "system": "Careful",
            "model": {"access": "Nodus", "families": ["haiku", "sonnet"]},
            "perRunMaxCostUSD": "0.50",
            "maxToolCalls": 9,
        },
    ),
    (
        "agent researcher --model openai/gpt-oss-20b --max-parallel-agents 8 --setup true --working-dir /w",
        "agent/researcher",
        "agents",
        {
            "model": {"access": "OnDemand", "name": "openai/gpt-oss-20b"},
            "maxParallelAgents": 8,
            "setup": "true",
            "workingDir": "/w",
        },
    ),
    (
        "agent own --model claude-sonnet-5-5 --api-key-secret anthropic-key --image i --egress Open",
        "agent/own",
        "agents",
        {
            "model": {"access": "BYOK", "name": "claude-sonnet-5-5", "apiKeySecret": "anthropic-key"},
            "image": "i",
            "network": {"egress": {"policy": "Open"}},
        },
    ),
    ("project staging --display-name Staging", "project/staging", "projects", {"displayName": "Staging"}),
    (
        "agentrun m --agent claude-assistant --prompt go --group g --task-key m --depends-on a --depends-on b",
        "agentrun/m",
        "agentruns",
        {"agent": "claude-assistant", "input": "go", "group": "g", "taskKey": "m", "dependsOn": ["a", "b"]},
    ),
]


@pytest.mark.req("NOD-488", "NOD-489")
@pytest.mark.parametrize(("line", "target", "plural", "spec"), CASES)
def test_a_kind_is_made_from_options(
    cli: Cli, server: FakeServer, *, line: str, target: str, plural: str, spec: dict[str, Any]
) -> None:
    output = cli("create", *line.split())
    assert (output.code, output.out, output.err) == (0, f"{target} created\n", "")
    [stored] = [thing["spec"] for (_, kind, _), thing in server.objects.items() if kind == plural]
    assert stored == spec


def test_options_that_say_nothing_clear_are_refused_and_no_value_is_repeated(
    cli: Cli, server: FakeServer
) -> None:
    assert "give it alone" in cli("create", "sandbox", "s", "--size", "Starter", "--cpu", "1").err
    for option in (("--secret", "KEY=plum-9f31"), ("--env", "plum-9f31")):
        output = cli("create", "sandbox", "s", *option)
        assert (output.code, "takes NAME=" in output.err, "plum-9f31" in output.err) == (1, True, False)
    assert server.asked("POST") == []


def test_a_kind_of_the_organization_belongs_to_no_project(cli: Cli, server: FakeServer) -> None:
    cli("create", "project", "staging")
    assert [seen.path for seen in server.asked("POST")] == ["/apis/nodus.dev/v1/projects"]
    assert cli("get", "projects", "-p", "elsewhere", "-o", "name").out == "project/staging\n"
    assert cli("get", "organizations").err == "No organizations in this organization.\n"


def test_a_key_is_shown_when_it_is_made(cli: Cli, server: FakeServer) -> None:
    output = cli("create", "apikey", "ci", "--role", "editor", "--for-project", "web", "--ttl", "30d")
    assert output.out == "apikey/ci created\nnodus_1_shown_once\n"
    assert server.object("apikeys", "ci", "")["spec"] == {"role": "editor", "projects": ["web"], "ttl": "30d"}
    token = cli("create", "apikey", "r", "--permission", "agentruns:read", "-o", "jsonpath={.status.token}")
    assert token.out == "nodus_1_shown_once"
    assert server.object("apikeys", "r", "")["spec"]["projects"] == ["*"]


KEY = """\
apiVersion: nodus.dev/v1
kind: ApiKey
metadata: {name: ci}
spec: {role: editor, projects: ["*"]}
"""


@pytest.mark.parametrize("command", ["apply", "create"])
def test_a_key_from_a_file_is_shown_when_it_is_made(cli: Cli, server: FakeServer, command: str) -> None:
    other = KEY.replace("name: ci", "name: cd")
    made = cli(command, "-f", "-", stdin=f"{KEY}---\n{other}")
    token = TOKEN_OF_NEW_KEYS
    assert made == (0, f"apikey/ci created\n{token}\napikey/cd created\n{token}\n", "")
    assert cli("apply", "-f", "-", stdin=KEY).out == "apikey/ci unchanged\n"
    assert token not in cli("get", "apikeys", "-o", "yaml").out


@pytest.mark.parametrize("command", [("apply", "-f", "-"), ("create", "-f", "-"), ("create", "apikey", "ci")])
def test_a_key_whose_token_is_not_in_the_output_shows_it_beside(
    cli: Cli, server: FakeServer, command: tuple[str, ...]
) -> None:
    options = () if "-f" in command else ("--role", "editor")
    made = cli(*command, *options, "-o", "name", stdin=KEY)
    assert (made.code, made.out) == (0, "apikey/ci\n")
    assert made.err == f"apikey/ci token, shown now and never again: {TOKEN_OF_NEW_KEYS}\n"


def test_a_key_that_is_only_checked_has_no_token(cli: Cli, server: FakeServer) -> None:
    for mode in ("client", "server"):
        assert TOKEN_OF_NEW_KEYS not in str(cli("create", "-f", "-", f"--dry-run={mode}", stdin=KEY))


@pytest.mark.parametrize("command", [("apply", "-f", "-"), ("create", "-f", "-"), ("create", "apikey", "ci")])
def test_a_key_whose_answer_was_lost_is_not_asked_for_again(
    cli: Cli, server: FakeServer, command: tuple[str, ...]
) -> None:
    server.faults.append(Fault("(POST|PATCH) .*apikeys", lost=True))
    options = () if "-f" in command else ("--role", "editor")
    lost = cli(*command, *options, stdin=KEY)
    assert (lost.code, lost.out) == (1, "")
    assert "Error (OutcomeUnknown)" in lost.err
    assert "delete apikey/ci and make it again" in lost.err
    assert len(server.asked("(POST|PATCH) .*apikeys")) == 1
