"""What names an endpoint and its key: the same for all its calls, another for another key, and no key in it."""

import pytest
from nodus_core.inference import Target
from nodus_core.providers import Credential, Credentials, HttpModels

KEY = "sk-very-secret"


def gate(credential: Credential, endpoint: str = "anthropic") -> str:
    return HttpModels(Credentials({endpoint: credential})).gate(Target("anthropic", "m", "f", endpoint, "m"))


@pytest.mark.req("FLD-04")
def test_a_gate_stands_for_endpoint_address_and_key() -> None:
    gates = [
        gate(Credential(KEY)),
        gate(Credential("sk-other")),
        gate(Credential(KEY, "https://elsewhere.example")),
        gate(Credential(KEY), "openai"),
    ]
    assert len(set(gates)) == 4
    assert gate(Credential(KEY)) == gates[0]
    assert not any(KEY in one for one in gates)
