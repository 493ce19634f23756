"""Keys are read from the secret's JSON and never shown."""

import json
import traceback

import pytest
from nodus_core.providers import BadCredentials, Credentials

SECRET = "sk-do-not-show-me"


def text(**fields: object) -> str:
    return json.dumps({"anthropic": {"apiKey": SECRET, **fields}})


def test_the_secret_is_read_as_the_protocol_says() -> None:
    credentials = Credentials.from_json(text(baseURL="http://127.0.0.1:1/", scripted=True))
    assert credentials["anthropic"].api_key == SECRET
    assert credentials["anthropic"].base_url == "http://127.0.0.1:1/"
    assert credentials.scripted == {"anthropic"}
    assert Credentials.from_json(text()).scripted == set()


def test_no_repr_shows_a_key() -> None:
    credentials = Credentials.from_json(text())
    for shown in (
        repr(credentials),
        str(credentials),
        repr(dict(credentials)),
        f"{credentials['anthropic']}",
    ):
        assert SECRET not in shown
    assert "anthropic" in repr(credentials)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (f'{{"anthropic": {{"apiKey": "{SECRET}"', "is not JSON"),
        (f'["{SECRET}"]', "must be a JSON object"),
        (json.dumps({"anthropic": SECRET}), "anthropic: must be an object"),
        (json.dumps({"anthropic": {"key": SECRET}}), "anthropic.apiKey"),
        (text(apiKey="  "), "anthropic.apiKey"),
        (text(apiKey=f"{SECRET}\nx-evil: 1"), "anthropic.apiKey"),
        (text(apiKey=f"{SECRET}é"), "anthropic.apiKey"),
        (text(baseURL="ftp://x"), "anthropic.baseURL"),
        (text(scripted="yes"), "anthropic.scripted"),
    ],
)
def test_a_broken_secret_names_the_field_and_never_the_value(broken: str, says: str) -> None:
    with pytest.raises(BadCredentials) as raised:
        Credentials.from_json(broken)
    shown = "".join(traceback.format_exception(raised.value))
    assert says in str(raised.value)
    assert SECRET not in shown
