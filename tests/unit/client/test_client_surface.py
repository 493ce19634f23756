"""What the package shows, what it costs to import, and what its page says."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import nodus
import pytest
from nodus.cli import reference
from nodus.cli.main import nodus as program

from tests.unit.client.conftest import Cli

ROOT = Path(__file__).parents[3]

PUBLIC = {
    "nodus": """AgentRun AgentRuns Agents ApiError Applied Budgets ClaudeAgent Client Egress Family GitSource ModelAgent
        NodusError Protocol Record Resource RunBlockedError RunFailedError Secrets Source WaitTimeoutError __version__
        errors""",
    "AgentRun": "answer cancel from_name project resolve send status steps wait",
    "AgentRuns": "answer apply cancel create delete get kind list pages patch path plural resolve send steps",
    "Agents": "apply create delete get kind list pages patch path plural",
    "Budgets": "apply create delete get kind list pages patch path plural",
    "ClaudeAgent": "from_name manifest remote submit",
    "Client": "agentruns agents budgets close in_project project resource secrets settings transport",
    "Egress": "allow deny hosts open to_spec",
    "ModelAgent": "from_name manifest remote submit",
    "Record": "get to_dict",
    "Secrets": "apply create delete get kind list pages patch path plural",
}
SIGNATURES = {
    "AgentRun.from_name": "(name, *, project=None, client=None)",
    "AgentRun.wait": "(self, timeout=None)",
    "AgentRun.send": "(self, key, text)",
    "AgentRun.cancel": "(self, *, timeout=120.0)",
    "AgentRun.resolve": "(self, step, *, happened, text=None, exit_code=None, request_key=None)",
    "ClaudeAgent.from_name": "(name, *, project=None, client=None)",
    "ClaudeAgent.remote": "(self, prompt, *, deadline=None, parallelism=None, name=None, timeout=None)",
    "ClaudeAgent.submit": "(self, prompt, *, keep_alive=False, deadline=None, parallelism=None, name=None)",
    "ClaudeAgent": "(name, *, families=None, model=None, api_key_secret=None, api_key_field=None, project=None, "
    "client=None, **settings)",
    "ModelAgent": "(name, *, model, protocol=None, api_key_secret=None, api_key_field=None, base_url=None, "
    "project=None, client=None, **settings)",
    "Client": "(*, server=None, token=None, org=None, project=None, context=None)",
}
SETTINGS = """system per_run_max_cost max_tool_calls max_parallel_agents max_tokens working_dir state_dir source
    setup network image"""


def test_the_public_names() -> None:
    assert sorted(nodus.__all__) == sorted(PUBLIC["nodus"].split())
    assert all(hasattr(nodus, name) for name in nodus.__all__)
    for name, members in PUBLIC.items():
        if name != "nodus":
            assert sorted(m for m in dir(getattr(nodus, name)) if not m.startswith("_")) == members.split()


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_public_signatures(name: str) -> None:
    owner, _, method = name.partition(".")
    found = getattr(nodus, owner)
    signature = inspect.signature(getattr(found, method) if method else found)
    plain = signature.replace(
        parameters=[p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()],
        return_annotation=inspect.Signature.empty,
    )
    assert str(plain) == SIGNATURES[name]


def test_the_settings_of_an_agent_are_those_of_the_page() -> None:
    from nodus._agents import AgentSettings  # noqa: PLC0415

    assert [*AgentSettings.__annotations__] == SETTINGS.split()
    assert all(f"{name}:" in (nodus.ClaudeAgent.__doc__ or "") for name in AgentSettings.__annotations__)


def imported_by(code: str) -> set[str]:
    listing = f"import sys; {code}; print(*sys.modules)"
    return set(
        subprocess.run(
            [sys.executable, "-c", listing], check=True, capture_output=True, text=True
        ).stdout.split()
    )


@pytest.mark.req("NOD-502")
def test_importing_it_loads_nothing_slow_and_nothing_of_the_server() -> None:
    loaded = imported_by("import nodus, nodus.cli.main")
    assert not loaded & {
        "httpx2",
        "rich",
        "yaml",
        "ssl",
        "boto3",
        "pydantic",
        "nodus_core",
        "asyncio",
        "email.utils",
    }
    assert "click" not in imported_by("import nodus")


def test_it_is_typed_and_its_version_is_said_once_more() -> None:
    package = Path(nodus.__file__).parent
    assert (package / "py.typed").exists()
    project = tomllib.loads((package.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == nodus.__version__


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"nodus {nodus.__version__}\n"


def test_the_page_of_the_command_line_is_current() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == reference.page(), (
        "run: python -m nodus.cli.reference > docs/cli.md"
    )


def commands(group: click.Group, prefix: str = "nodus") -> list[tuple[str, click.Command]]:
    own = [(f"{prefix} {name}", command) for name, command in group.commands.items()]
    return own + [found for name, c in own if isinstance(c, click.Group) for found in commands(c, name)]


@pytest.mark.parametrize("name", [name for name, _ in commands(program)])
def test_every_command_explains_itself_and_takes_the_place(name: str, cli: Cli) -> None:
    output = cli(*name.split()[1:], "--help")
    assert (output.code, output.err) == (0, "")
    assert all(option in output.out for option in ("--project", "--org", "--context"))


@pytest.mark.parametrize("words", [("--help",), ("-h",), ()])
def test_the_program_explains_itself(words: tuple[str, ...], cli: Cli) -> None:
    output = cli(*words)
    assert "nodus agentrun answer NAME" in output.out + output.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("gte", "ar"), "no command 'gte'; did you mean 'get'? Commands: login, apply, create, get"),
        (("get", "ar", "--ouput", "json"), "Did you mean '--output'?"),
        (("get",), "Missing argument 'KIND[/NAME]'"),
        (("apply",), "Missing option '-f' / '--filename'"),
    ],
)
def test_a_command_line_without_meaning_teaches(words: tuple[str, ...], says: str, cli: Cli) -> None:
    output = cli(*words)
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (Usage): ")
    assert says in output.err
    assert "--help" in output.err
