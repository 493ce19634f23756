"""What the scripted model server sends is JSON in UTF-8, whatever a script lets it say."""

import json

import pytest

from localstack.scripted.heard import Heard
from localstack.scripted.script import Call, Reply
from localstack.scripted.speak import speak


@pytest.mark.req("FLD-08")
def test_a_lone_surrogate_goes_out_as_its_escape() -> None:
    reply = Reply(calls=(Call("run_command", '{"command": "echo \\\\ud83c \\\\ud83c\\\\udf78"}'),))
    body = speak(Heard("anthropic", "m"), reply, 100)
    (use,) = json.loads(body.decode())["content"]
    assert use["input"]["command"] == "echo \\ud83c \\ud83c\\udf78"
    reply = Reply(calls=(Call("run_command", '{"command": "\\ud83c|\\ud83c\\udf78"}'),))
    body = speak(Heard("anthropic", "m"), reply, 100)
    (use,) = json.loads(body.decode())["content"]
    assert use["input"]["command"] == "\ud83c|\U0001f378"
