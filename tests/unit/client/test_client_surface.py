"""What the package shows, what it costs to import, and what its page says."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import click
import nodus
import pytest
from nodus import _kinds
from nodus.cli import reference
from nodus.cli.main import nodus as program
from nodus_core.resources import kinds

from tests.unit.client.conftest import Cli

ROOT = Path(__file__).parents[3]

PUBLIC = {
    "nodus": """AgentGroup AgentGroups AgentRun AgentRuns ApiError Applied ArchiveSource AsyncAgentGroup
        AsyncAgentGroups
        AsyncAgentRun AsyncAgentRuns AsyncClaudeAgent AsyncClient AsyncModelAgent AsyncResource AsyncSandbox AsyncSandboxes ClaudeAgent
        Client Egress Event Family GitSource Login ModelAgent NodusError Protocol Record Resource RunBlockedError
        RunFailedError Sandbox Sandboxes Source WaitTimeoutError __version__ errors login_aws""",
    "AgentGroup": "create delete from_name project results seal status submit wait",
    "AgentGroups": """apply create delete get list pages patch path results update wait_for wait_gone watch""",
    "AgentRun": "answer cancel from_name project resolve send status steps team wait",
    "AgentRuns": """answer apply cancel create create_many delete get list pages patch path resolve send steps
        team update wait_for wait_gone watch""",
    "ClaudeAgent": "from_name manifest remote submit",
    "Client": """agentgroups agentruns agents apikeys budgets close connections endpoints environmentimages environments
        in_project kind organizations project projects sandboxes secrets settings transport wire""",
    "Egress": "allow count deny hosts index open policy to_spec",
    "Login": "async_client client",
    "ModelAgent": "from_name manifest remote submit",
    "Record": "get to_dict",
    "Sandbox": """attach create delete files from_name make_folder move_file preview project read_file remove_file
        run start status stop terminal write_file""",
    "Resource": "apply create delete get list pages patch path update wait_for wait_gone watch",
}
SIGNATURES = {
    "AgentGroup.create": "(name, *, agent, max_active=None, max_cost=None, evaluation=None, project=None, client=None)",
    "AgentGroup.submit": "(self, prompt, *, key, depends_on=(), deadline=None, parallelism=None)",
    "AgentGroup.wait": "(self, timeout=None)",
    "Sandbox.create": "(name, *, project=None, client=None, **settings)",
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
    setup network image env secrets"""


def test_the_public_names() -> None:
    assert sorted(nodus.__all__) == sorted(PUBLIC["nodus"].split())
    assert all(hasattr(nodus, name) for name in nodus.__all__)
    for name, members in PUBLIC.items():
        if name != "nodus":
            assert members_of(name) == members.split()


def members_of(name: str) -> list[str]:
    return sorted(member for member in dir(getattr(nodus, name)) if not member.startswith("_"))


@pytest.mark.parametrize("name", [name for name in PUBLIC if f"Async{name}" in nodus.__all__])
def test_what_awaits_has_the_same_calls(name: str) -> None:
    """Only where a client comes from differs: those who await open and close their own."""
    assert members_of(f"Async{name}") == members_of(name)
    blocking, awaited = getattr(nodus, name), getattr(nodus, f"Async{name}")
    for member in members_of(name):
        if member not in {"from_name", "create", "close"} and callable(getattr(blocking, member)):
            assert getattr(awaited, member) is getattr(blocking, member)


@pytest.mark.parametrize("name", ["ClaudeAgent", "ModelAgent"])
def test_the_agents_that_await_take_the_same_arguments(name: str) -> None:
    def taken(kind: type) -> set[str]:
        parameters = inspect.signature(kind).parameters.values()
        named = {parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD}
        more = [parameter for parameter in parameters if parameter.kind is parameter.VAR_KEYWORD]
        unpacked = typing.get_type_hints(kind.__init__)[more[0].name]
        return named | set(typing.get_args(unpacked)[0].__annotations__)

    assert taken(getattr(nodus, f"Async{name}")) == taken(getattr(nodus, name))


def test_the_kinds_are_those_of_the_server() -> None:
    assert {kind.name for kind in _kinds.KINDS} == {kind.name for kind in kinds.KINDS}
    for kind in kinds.KINDS:
        known = _kinds.find(kind.name)
        assert known is not None
        assert (known.plural, known.word, known.namespaced) == (kind.plural, kind.singular, kind.namespaced)
        assert tuple(filter(None, [known.short])) == kind.short_names
        assert hasattr(nodus.Client, kind.plural)


def test_a_bound_call_shows_what_to_give_it() -> None:
    client = nodus.Client(server="http://127.0.0.1", token="t")
    assert [*inspect.signature(client.agents.get).parameters] == ["name", "within"]
    assert (client.agents.get.__doc__ or "").startswith("Read one object")
    assert inspect.signature(nodus.AgentRun("r", client=client).wait).parameters["timeout"].default is None


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
    from nodus._agent_spec import AgentSettings  # noqa: PLC0415

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
    assert not imported_by("import nodus") & {
        "click",
        "dataclasses",
        "inspect",
        "urllib.parse",
        "nodus._config",
    }


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
    ctx = click.Context(group)
    listed = [(f"{prefix} {name}", group.get_command(ctx, name)) for name in group.list_commands(ctx)]
    own = [(name, command) for name, command in listed if command is not None]
    assert len(own) == len(listed)
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
        (("gte", "ar"), "no command 'gte'; did you mean 'get'? Commands: login, logout, whoami"),
        (("get", "ar", "--ouput", "json"), "Did you mean '--output'?"),
        (("get",), "which kind? `nodus get KIND` lists"),
        (("apply",), "Missing option '-f' / '--filename'"),
    ],
)
def test_a_command_line_without_meaning_teaches(words: tuple[str, ...], says: str, cli: Cli) -> None:
    output = cli(*words)
    assert (output.code, output.out) == (1, "")
    assert output.err.startswith("Error (Usage): ")
    assert says in output.err
    assert "--help" in output.err
