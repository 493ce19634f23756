"""The app synthesizes anywhere, obeys the security rules, and is CloudFormation that AWS accepts."""

import json
from collections.abc import Iterator

import pytest
from cfnlint.api import lint_file

from tests.infra.synthesis import ROOT, Assembly

# CDK lets a function depend on its role and on the role's policy; only the second is not implied already.
CDK_WRITES = {"W3005"}


def test_synthesizes_offline_without_an_account_and_obeys_the_security_rules(assembly: Assembly) -> None:
    assert assembly.succeeded, assembly.answer
    assert [template.body["Resources"] for template in assembly.templates]


def test_every_setting_obeys_the_security_rules(other: Assembly) -> None:
    assert other.succeeded, other.answer


def test_what_must_be_asked_for_obeys_the_security_rules(asked: Assembly) -> None:
    assert asked.succeeded, asked.answer


def test_nothing_in_the_assembly_waits_for_a_lookup(assembly: Assembly) -> None:
    manifest = json.loads((assembly.folder / "manifest.json").read_text())
    assert not manifest.get("missing")
    assert not list(assembly.folder.rglob("cdk.context.json"))


def acknowledgements(made: Assembly) -> Iterator[tuple[str, str, str]]:
    """Path, finding and reason of what our code acknowledged; CDK acknowledges warnings of its own."""
    for template in made.templates:
        path = template.path.with_name(template.path.name.replace("template", "metadata"))
        for construct, entries in json.loads(path.read_text()).items():
            for entry in entries:
                if entry["type"] == "aws:cdk:acknowledged-rules":
                    yield from (
                        (construct, *each) for each in entry["data"].items() if "AwsSolutions" in each[0]
                    )


def test_findings_are_acknowledged_on_their_own_constructs_with_a_reason(assembly: Assembly) -> None:
    found = list(acknowledgements(assembly))
    assert found
    for construct, finding, reason in found:
        assert construct.count("/") >= 3, f"{construct} answers for more than itself: {finding}"
        assert reason.endswith("."), f"{construct}: {finding} has no reason but {reason!r}"


@pytest.mark.parametrize(
    ("which", "stack"),
    [
        ("assembly", "state"),
        ("assembly", "service"),
        ("other", "state"),
        ("other", "service"),
        ("other", "images"),
        ("asked", "service"),
        ("asked", "images"),
    ],
)
def test_cfn_lint_finds_nothing(which: str, stack: str, request: pytest.FixtureRequest) -> None:
    made: Assembly = request.getfixturevalue(which)
    findings = lint_file(getattr(made, stack).path)
    assert [f"{each.rule.id} {each.message}" for each in findings if each.rule.id not in CDK_WRITES] == []


def test_deploys_without_docker_and_without_code_of_others_running_in_the_account(assembly: Assembly) -> None:
    for template in assembly.templates:
        manifest = template.path.with_name(template.path.name.replace("template", "assets"))
        assert json.loads(manifest.read_text())["dockerImages"] == {}
        kinds = {each["Type"] for each in template.body["Resources"].values()}
        assert not {kind for kind in kinds if "Custom" in kind}
        assert not {
            each for each in template.of_type("AWS::Lambda::Function").values() if "ImageUri" in str(each)
        }


def test_the_app_command_is_the_one_that_the_command_line_runs() -> None:
    assert json.loads((ROOT / "cdk.json").read_text())["app"] == "python3 app.py"
