"""What is wrong with an input is said once, where it is, and nothing of it is stored: on the terminal and on the wire."""

from __future__ import annotations

import httpx2
import pytest
import yaml

from localstack.testing import TestCloud
from tests.e2e.conftest import Place

pytestmark = [pytest.mark.timeout(120, func_only=True), pytest.mark.integration]

HEAD = "apiVersion: nodus.dev/v1\nkind: {kind}\nmetadata: {{name: e2e-bad}}\nspec:\n"
AGENT, RUN = HEAD.format(kind="Agent"), HEAD.format(kind="AgentRun")

# manifest, the field that is named, its line (None: the whole document)
BAD: list[tuple[str, str, int | None]] = [
    (AGENT + "  sytem: Be brief.\n", "spec.sytem", 5),
    (AGENT + "  maxToolCalls: many\n", "spec.maxToolCalls", 5),
    (AGENT + "  system: [a, b]\n", "spec.system", 5),
    (AGENT + "  perRunMaxCostUSD: '-1'\n", "spec.perRunMaxCostUSD", 5),
    (AGENT + "  network: {egress: {policy: Maybe}}\n", "spec.network.egress.policy", 5),
    (AGENT + "  model: {access: BYOK, name: m}\n", "spec.model.apiKeySecret", 5),
    (RUN + "  input: Say hello.\n", "spec.agent", None),
    (RUN + "  agent: e2e-nobody\n  input: ' '\n", "spec.input", 6),
]


@pytest.fixture
def base(local_cloud: TestCloud) -> tuple[str, str]:
    """Address of the project, and the key."""
    context = yaml.safe_load(local_cloud.configuration.read_text())["contexts"]["local"]
    return f"{context['server']}/apis/nodus.dev/v1/namespaces/default", context["token"]


def nothing_is_stored(terminal: Place) -> None:
    for kind in ("agent", "agentrun"):
        assert "Error (NotFound): " in terminal.nodus("get", f"{kind}/e2e-bad", code=1)


@pytest.mark.req("NOD-500", "FLD-17", "NODQ-01")
@pytest.mark.parametrize("mistake", BAD, ids=lambda mistake: mistake[1])
def test_a_manifest_with_a_mistake(
    terminal: Place, base: tuple[str, str], mistake: tuple[str, str, int | None]
) -> None:
    text, field, line = mistake
    said = terminal.nodus("apply", "-f", "-", stdin=text, code=1).splitlines()
    assert said[0].startswith("Error (Invalid): ")
    assert "Traceback" not in "".join(said)
    (named,) = [row for row in said[1:] if row.strip().startswith(f"{field}: ")]
    assert line is None or f"line {line})" in named

    address, key = base
    kind = yaml.safe_load(text)["kind"].lower()
    refused = httpx2.patch(
        f"{address}/{kind}s/e2e-bad",
        content=text.encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/apply-patch+yaml"},
        timeout=60,
    )
    status = refused.json()
    assert (refused.status_code, status["kind"], status["status"]) == (status["code"], "Status", "Failure")
    assert (status["reason"], status["code"]) == ("Invalid", 422)
    assert field in [cause["field"] for cause in status["details"]["causes"]]
    nothing_is_stored(terminal)


@pytest.mark.req("FLD-17", "NOD-500")
def test_a_key_that_is_written_twice(terminal: Place, base: tuple[str, str]) -> None:
    text = AGENT + "  maxToolCalls: 1\n  system: x\n  maxToolCalls: 2\n"
    said = terminal.nodus("apply", "-f", "-", stdin=text, code=1)
    assert len(said.splitlines()) == 1
    assert "maxToolCalls" in said
    assert "7" in said
    address, key = base
    refused = httpx2.patch(
        f"{address}/agents/e2e-bad",
        content=text.encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/apply-patch+yaml"},
        timeout=60,
    )
    assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
    assert "maxToolCalls" in refused.json()["message"]
    nothing_is_stored(terminal)


@pytest.mark.req("NOD-030", "NOD-500")
def test_a_run_of_an_agent_that_is_not_there(terminal: Place) -> None:
    words = ("create", "agentrun", "e2e-bad", "--agent", "e2e-nobody", "--prompt", "Say hello.")
    said = terminal.nodus(*words, code=1)
    assert said.startswith("Error (NotFound): ")
    assert "e2e-nobody" in said
    nothing_is_stored(terminal)


@pytest.mark.req("NOD-039", "FLD-06")
def test_an_input_that_is_one_byte_too_long(terminal: Place) -> None:
    terminal.nodus("apply", "-f", "-", stdin=AGENT.replace("e2e-bad", "e2e-listener") + "  system: x\n")
    letters = "é" * 131_072 + "x"
    text = RUN + f"  agent: e2e-listener\n  input: '{letters}'\n"
    said = terminal.nodus("apply", "-f", "-", stdin=text, code=1)
    assert said.startswith("Error (PayloadTooLarge): ")
    assert "262144" in said.replace(",", "")
    assert len(said) < 2000
    nothing_is_stored(terminal)


@pytest.mark.req("NOD-467", "NODQ-97")
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"NODUS_TOKEN": "nodus_wrong"}, "Unauthorized"), ({"NODUS_ORG": "somebody-else"}, "Forbidden")],
)
def test_a_key_that_opens_nothing_and_an_organization_that_is_not_its_own(
    terminal: Place, base: tuple[str, str], change: dict[str, str], reason: str
) -> None:
    address, key = base
    server = address.removesuffix("/apis/nodus.dev/v1/namespaces/default")
    own = {"NODUS_SERVER": server, "NODUS_TOKEN": key, "NODUS_PROJECT": "default"}
    stranger = Place(terminal.environment | own | change, terminal.folder)
    said = stranger.nodus("apply", "-f", "-", stdin=AGENT + "  system: x\n", code=1)
    assert said.startswith(f"Error ({reason}): ")
    assert key not in said
    assert "nodus_wrong" not in said
    nothing_is_stored(terminal)
