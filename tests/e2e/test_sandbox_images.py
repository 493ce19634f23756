"""Images of sandboxes and the Inference tool, by the program and the SDK, against the deployed local cloud."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Place

pytestmark = pytest.mark.integration


@pytest.fixture
def sandbox(terminal: Place) -> str:
    terminal.nodus("create", "sandbox", "tools", "--ttl", "30m")
    terminal.nodus("wait", "sandbox/tools", "--for=jsonpath={.status.phase}=Running", "--timeout=3m")
    return "tools"


@pytest.mark.req("NOD-021", "NOD-446", "NOD-450", "NOD-451", "NOD-453")
def test_the_local_cloud_says_what_its_image_is_and_refuses_another(terminal: Place, sandbox: str) -> None:
    (listed,) = json.loads(terminal.nodus("sandbox", "images", "-o", "json"))["items"]
    assert listed == {"image": "nodus/agent-tools", "source": "Catalog"}
    assert "nodus/agent-tools" in terminal.nodus("sandbox", "images")
    status = json.loads(terminal.nodus("get", f"sandbox/{sandbox}", "-o", "json"))["status"]
    assert status["image"] == "nodus/agent-tools"
    conditions = {each["type"]: each for each in status["conditions"]}
    assert conditions["ImagePinned"]["reason"] == "MachineTools"
    assert "Python 3" in terminal.nodus("sandbox", "run", sandbox, "--", "python3", "--version")
    said = terminal.nodus("create", "sandbox", "other", "--image", "python:3.12", code=1)
    assert "NotAvailable" in said
    assert "machine's own tools" in said
    image = "apiVersion: nodus.dev/v1\nkind: EnvironmentImage\nmetadata: {name: mine}\nspec: {image: 'python:3.12'}\n"
    terminal.nodus("apply", "-f", "-", stdin=image)
    assert "NoImages" in terminal.nodus("get", "environmentimage/mine", "-o", "yaml")
    assert "mine Failed" in terminal.nodus("sandbox", "build-image", "mine", code=1)
    terminal.nodus("delete", f"sandbox/{sandbox}", "environmentimage/mine")


@pytest.mark.req("NOD-419", "NOD-420", "NOD-423")
def test_the_example_of_the_inference_tool_runs_and_the_sandbox_holds_no_key(
    terminal: Place, sandbox: str
) -> None:
    told = terminal.nodus("sandbox", "inference", sandbox)
    for words in ("openai/gpt-oss-20b", "0.05 USD", "Setup prompt for coding tools:", "import nodus"):
        assert words in told
    example = terminal.python(
        f"import nodus\nprint(nodus.Client().sandboxes.inference({sandbox!r}, model='gpt-oss-120b').python)"
    )
    assert "openai/gpt-oss-120b" in example
    assert terminal.python(example).strip()
    seen = terminal.nodus("sandbox", "run", sandbox, "--", "env").upper()
    assert not any(word in seen for word in ("NODUS_TOKEN", "API_KEY", "NODUS_1_"))
    terminal.nodus("delete", f"sandbox/{sandbox}", "agent/sandbox-example")
