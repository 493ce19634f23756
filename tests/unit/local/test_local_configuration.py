"""The client configuration as `make up` writes it: whose context is whose, and what cannot be written."""

import io
import json
import os
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from localstack import tenant
from localstack.bootstrap import usable_home
from localstack.endpoints import Cloud
from localstack.paths import State
from localstack.processes import ProcessError

OUTPUTS = {"nodus-service": {"HttpApiId": "h1", "AdminFunctionName": "admin"}}


class Administration:
    """The admin function: gives numbered keys."""

    def __init__(self) -> None:
        self.keys = 0

    def __call__(self, _cloud: Cloud, **request: Any) -> dict[str, Any]:
        assert request["operation"] == "CreateKey"
        self.keys += 1
        return {"token": f"key-{self.keys}"}


@pytest.fixture
def administration(monkeypatch: pytest.MonkeyPatch) -> Administration:
    made = Administration()
    monkeypatch.setattr(tenant, "admin", made)
    return made


def new_cloud(folder: Path, port: int) -> tuple[State, Cloud]:
    state = State(folder)
    state.create()
    cloud = Cloud(f"http://127.0.0.1:{port}", "id", "secret", outputs=OUTPUTS)
    cloud.save(state)
    return state, cloud


def test_two_clouds_of_a_user_have_a_context_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, administration: Administration
) -> None:
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("NODUS_CONFIG", str(path))
    clouds = [new_cloud(tmp_path / name, 24000 + number) for number, name in enumerate(("a", "b"))]
    for _ in range(2):  # the second round changes nothing
        for state, cloud in clouds:
            tenant.ensure_key(state, cloud)
    written = yaml.safe_load(path.read_text())
    first, second = written["contexts"].items()
    assert written["current-context"] == first[0] == "local"
    assert second[0].startswith("local-")
    assert [first[1]["token"], second[1]["token"]] == ["key-1", "key-2"]
    assert [first[1]["server"], second[1]["server"]] == [cloud.api_url for _, cloud in clouds]
    assert administration.keys == 2


def test_the_context_of_a_cloud_that_was_cleaned_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, administration: Administration
) -> None:
    path = tmp_path / "config.yaml"
    monkeypatch.setenv("NODUS_CONFIG", str(path))
    gone, cloud = new_cloud(tmp_path / "gone", 24000)
    tenant.ensure_key(gone, cloud)
    gone.remove()
    tenant.ensure_key(*new_cloud(tmp_path / "new", 24001))
    assert list(yaml.safe_load(path.read_text())["contexts"]) == ["local"]


def test_a_configuration_that_cannot_be_written_is_named_and_no_key_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, administration: Administration
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("NODUS_CONFIG", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file"))  # nothing can be made below it, whoever asks
    with pytest.raises(ProcessError, match=r"file/\.config/nodus/config\.yaml .*NODUS_CONFIG"):
        tenant.ensure_key(*new_cloud(tmp_path / "a", 24000))
    assert administration.keys == 0


def test_tools_get_a_home_that_they_can_write_to(tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert usable_home({"HOME": str(tmp_path)}, other) == str(tmp_path)
    for home in ({}, {"HOME": ""}, {"HOME": "/nonexistent"}, {"HOME": os.devnull}):
        assert usable_home(home, other) == str(other)
    assert other.is_dir()


class Functions:
    """Lambda, whose administration function gives these answers in turn."""

    def __init__(self, *bodies: dict[str, Any]) -> None:
        self.left = list(bodies)

    def invoke(self, **_: Any) -> dict[str, Any]:
        body = self.left.pop(0)
        told = {"FunctionError": "Unhandled"} if "errorType" in body else {}
        return {**told, "Payload": io.BytesIO(json.dumps(body).encode())}


SLOW = {"errorType": "StoreUnavailable", "errorMessage": "no answer"}
WRONG = {"errorType": "ValueError", "errorMessage": "no"}


@pytest.mark.parametrize(
    ("bodies", "left", "fails"),
    [((SLOW, SLOW, {"ok": True}), 0, False), ((WRONG, {"ok": True}), 1, True), ((SLOW,) * 9, 4, True)],
)
def test_an_operation_is_repeated_while_the_store_is_too_slow_and_not_else(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bodies: tuple[dict[str, Any], ...],
    left: int,
    fails: bool,
) -> None:
    functions = Functions(*bodies)
    monkeypatch.setattr(tenant.boto3, "client", lambda *_, **__: functions)
    _, cloud = new_cloud(tmp_path / "one", 24002)
    with pytest.raises(ProcessError, match="PublishTemplates failed") if fails else nullcontext():
        assert tenant.admin(cloud, operation="PublishTemplates") == {"ok": True}
    assert len(functions.left) == left
