"""Calls that must not type-check; each line names pyright's rule. Never run."""

import nodus

nodus.ClaudeAgent("helper", families=["gpt"])  # reportArgumentType
nodus.ClaudeAgent("helper", per_run_max_cost=0.5)  # reportArgumentType
nodus.ClaudeAgent("helper", sytem="x")  # reportCallIssue
nodus.ClaudeAgent("helper", "You are careful.")  # reportCallIssue
nodus.ClaudeAgent("helper", source={"git": {"ref": "main"}})  # reportArgumentType
nodus.ClaudeAgent("helper", network="Open")  # reportArgumentType
nodus.ClaudeAgent()  # reportCallIssue
nodus.ModelAgent("m")  # reportCallIssue
nodus.ModelAgent("m", model="x", protocol="gRPC")  # reportArgumentType
nodus.ClaudeAgent("helper").submit("x", keepAlive=True)  # reportCallIssue
nodus.ClaudeAgent("helper").remote(["x"])  # reportArgumentType
nodus.ClaudeAgent("helper").submit("x", parallelism="6")  # reportArgumentType
nodus.AgentRun.from_name("r", "web")  # reportCallIssue
nodus.AgentRun.from_name("r").wait("8m")  # reportArgumentType
nodus.AgentRun.from_name("r").status = "x"  # reportAttributeAccessIssue
nodus.Egress("Some")  # reportArgumentType
nodus.Client("http://127.0.0.1")  # reportCallIssue
nodus.no_such_name()  # reportAttributeAccessIssue
