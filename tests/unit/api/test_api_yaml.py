"""Apply bodies in YAML: the same results as in JSON, or a refusal with its line (FLD-17)."""

import pytest

from tests.unit.api.rest import APPLY, Reply, Rest

HELLO = """\
apiVersion: nodus.dev/v1
kind: Agent
metadata:
  name: hello-agent
spec:
  workingDir: /workspace
  continuity: {mode: Snapshotted, stateDir: /workspace}
  setup: printf 'workspace-ready\\n' > ready.txt
  # Optional, after connecting the repository in this project:
  system: |
    You are a careful assistant.
  model:
    access: Nodus
  perRunMaxCostUSD: "0.50"
"""


@pytest.fixture
def rest() -> Rest:
    return Rest()


def apply(rest: Rest, text: str | bytes, name: str = "hello-agent") -> Reply:
    return rest.call("PATCH", f"agents/{name}", text, kind=APPLY)


def agent(spec: str) -> str:
    return f"apiVersion: nodus.dev/v1\nkind: Agent\nmetadata: {{name: hello-agent}}\nspec:\n{spec}\n"


@pytest.mark.req("NEX-04", "FLD-17")
def test_yaml_means_what_its_json_means(rest: Rest) -> None:
    created = apply(rest, HELLO)
    assert created.code == 201
    again = rest.apply("agents/hello-agent", created.json)
    assert (again.code, again.json) == (200, created.json)
    assert created.json["spec"]["system"] == "You are a careful assistant.\n"
    crlf = apply(rest, b"\xef\xbb\xbf" + HELLO.replace("\n", "\r\n").encode())
    assert crlf.json == created.json
    assert apply(rest, "---\n" + HELLO + "...\n").json == created.json


@pytest.mark.req("FLD-17", "NODQ-92")
@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ("  system: on", {"system": "on"}),
        ("  system: no", {"system": "no"}),
        ("  system: 1e3", {"system": "1e3"}),
        ("  system: 0100", {"system": "0100"}),
        ("  system: 1.10", {"system": "1.10"}),
        ("  system: 2026-12-01", {"system": "2026-12-01"}),
        ("  perRunMaxCostUSD: 0.50", {"perRunMaxCostUSD": "0.50"}),
        ("  perRunMaxCostUSD: 1.10", {"perRunMaxCostUSD": "1.10"}),
        ("  source: {git: {repo: o/r, ref: 0100}}", {"source": {"git": {"repo": "o/r", "ref": "0100"}}}),
        ("  maxToolCalls: 5\n  setup: ~", {"maxToolCalls": 5}),
        ("  setup: !!str true", {"setup": "true"}),
    ],
)
def test_plain_words_are_kept_as_written(rest: Rest, spec: str, kept: dict[str, object]) -> None:
    assert apply(rest, agent(spec)).json["spec"] == kept


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.req("FLD-17")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (agent("  maxToolCalls: 1\n  maxToolCalls: 2"), "line 6: spec.maxToolCalls: this key is given twice"),
        (agent("  system: &x y\n  setup: *x"), "line 5: spec.system: anchors"),
        (BOMB, "anchors"),
        (agent("  <<: {system: x}"), "merge keys"),
        (agent("  system: !!python/object:os.system x"), "tags"),
        (agent("  ? [a]\n  : b"), "plain word"),
        (agent("  system: x") + "---\n" + HELLO, "one document"),
        (agent("  system: [x"), "not YAML"),
        (agent("  system: 'x"), "not YAML"),
        ("", "empty"),
        ("\n# nothing\n", "empty"),
        ("just words", "JSON object"),
        ("[]", "JSON object"),
        (agent("  env: " + "[" * 60 + "]" * 60), "levels"),
        (agent("  env: [" + "0," * 30_000 + "]"), "values"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"a: \x07", "characters"),
    ],
)
def test_what_has_no_single_meaning_is_refused(rest: Rest, text: str | bytes, words: str) -> None:
    stored = rest.commits
    refused = apply(rest, text)
    assert (refused.code, refused.json["reason"]) == (400, "BadRequest")
    assert words in refused.json["message"]
    assert rest.commits == stored


def test_a_boolean_where_a_text_belongs_is_refused(rest: Rest) -> None:
    assert apply(rest, agent("  system: true")).fields == ["spec.system"]


def test_flow_yaml_that_looks_like_json_is_read(rest: Rest) -> None:
    text = "{apiVersion: nodus.dev/v1, kind: Agent, metadata: {name: hello-agent}, spec: {system: x}}"
    assert apply(rest, text).json["spec"] == {"system": "x"}
