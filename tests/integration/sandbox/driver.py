"""Runs the launcher for a test, as whichever user the test starts it: commands come as JSON lines on stdin.

It stands for the agent: `kill -9` of it is the agent's death. Standard library and `localstack` only.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from localstack.ecs_agent import cgroups, runtime
from localstack.ecs_agent.egress import Egress
from localstack.ecs_agent.isolation import Isolation, Mode
from localstack.ecs_agent.launcher import Launcher, Order
from localstack.ecs_agent.limits import Limits
from localstack.ecs_agent.sandbox import Sandbox
from localstack.ecs_agent.user_namespaces import open_namespaces

SLOTS = 12


class Driver:
    def __init__(self, options: dict[str, Any]) -> None:
        self.mode = Mode(options["mode"])
        folder = Path(options["folder"])
        namespaces = tuple(open_namespaces(SLOTS)) if self.mode is Mode.ROOT else ()
        assembled = runtime.assemble(
            folder / "runtime",
            Path(options["package"]),
            required=options["required"],
            search=options["search"],
        )
        (folder / "sandboxes").mkdir(mode=0o700)
        groups = cgroups.ControlGroups.find(options["name"])
        self.launcher = Launcher(
            assembled, folder / "sandboxes", groups, namespaces, egress_log=folder / "egress.log"
        )
        self.bwrap = Path(options["bwrap"])
        self.running: dict[str, Sandbox] = {}

    def attempt(self) -> dict[str, Any]:
        return {
            "failure": self.launcher.attempt(self.mode, self.bwrap),
            "limits": sorted(self.launcher.groups.parents),
        }

    def start(
        self,
        id: str,
        allowed: list[tuple[str, int]],
        limits: dict[str, Any],
        variables: dict[str, str],
        *,
        own_guard: bool = False,
        trusted: list[str] | None = None,
    ) -> dict[str, Any]:
        order = Order(
            sandbox_id=id,
            task=f"arn:task/{id}",
            variables={"NODUS_SANDBOX_ID": id, **variables},
            allowed=frozenset((host, port) for host, port in allowed),
            limits=Limits(**limits),
            egress=Egress.of(variables),
        )
        slot = min(set(range(SLOTS)) - {sandbox.slot for sandbox in self.running.values()})
        launcher = replace(self.launcher, trusted=tuple(trusted or ()))
        sandbox = launcher.start(order, Isolation(self.mode, self.bwrap, own_guard=own_guard), slot)
        self.running[id] = sandbox
        return {
            "pid": sandbox.pid,
            "bwrap": sandbox.process.pid,
            "folder": str(sandbox.folder.path),
            "proxy": sandbox.proxy and sandbox.proxy.pid,
        }

    def ask_to_end(self, id: str) -> dict[str, Any]:
        self.running[id].ask_to_end()
        return {}

    def poll(self, id: str) -> dict[str, Any]:
        sandbox = self.running[id]
        return {"code": sandbox.poll(), "proxy": sandbox.proxy and sandbox.proxy.pid}

    def close(self, id: str) -> dict[str, Any]:
        sandbox = self.running.pop(id)
        sandbox.close()
        sandbox.folder.remove()
        return {"left": sandbox.folder.path.exists()}


def main() -> None:
    driver = Driver(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = getattr(driver, request.pop("do"))(**request)
        except Exception as error:  # noqa: BLE001 - shown by the test
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
    for id in list(driver.running):
        driver.close(id)


if __name__ == "__main__":
    os.umask(0o077)
    main()
