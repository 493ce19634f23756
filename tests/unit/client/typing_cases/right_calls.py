"""Calls that must type-check; never run."""

from decimal import Decimal
from typing import assert_type

import nodus

agent = nodus.ClaudeAgent(
    "repo-helper",
    system="You are careful.",
    families=["haiku", "sonnet"],
    per_run_max_cost=Decimal("0.50"),
    working_dir="/workspace",
    source={"git": {"repo": "your-org/your-repo"}},
    network=nodus.Egress.allow(["github.com"]),
)
assert_type(agent, nodus.ClaudeAgent)
assert_type(nodus.ClaudeAgent.from_name("claude-assistant", project="nodus"), nodus.ClaudeAgent)
assert_type(agent.remote("x", timeout=5), str)
run = agent.submit("x", keep_alive=True, parallelism=6)
assert_type(run, nodus.AgentRun)
assert_type(run.answer(), str)
assert_type(run.steps(), list[nodus.Record])
assert_type(run.wait(timeout=660), nodus.Record)
nodus.ModelAgent("m", model="gpt-4.1-mini", protocol="OpenAI", api_key_secret="model-key")
with nodus.Client(project="web") as client:
    for found in client.agentruns.list():
        assert_type(found, nodus.Record)
