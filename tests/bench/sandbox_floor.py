"""`python -m tests.bench.sandbox_floor N`: how long the launcher's own command line takes with `true` in the daemon's place.

Run by the local cloud's interpreter, as the ECS agent is. Prints the seconds as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

from localstack.ecs_agent.isolation import Refusal
from localstack.ecs_agent.means import means_of
from localstack.ecs_agent.settings import Settings


def main(times: int) -> None:
    """Raises RuntimeError where no sandbox can be started here."""
    settings = Settings.parse(["--max-sandboxes", "1"], os.environ)
    settings.state.sandboxes.mkdir(parents=True, exist_ok=True)
    means = means_of(settings)
    isolation = means.isolation
    if isinstance(isolation, Refusal) or isolation.bwrap is None:
        raise RuntimeError(f"no isolated sandbox can be started here: {isolation}")
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        problem = means.launcher.attempt(isolation.mode, isolation.bwrap)
        found.append(time.perf_counter() - began)
        if problem is not None:
            raise RuntimeError(problem)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
