"""DBOS on SQLite, a journaled step each. Run by `peers/__init__.py`."""

import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from workload import main

EFFECTS = []
# Steps are functions of the module: a process that takes up another's run must find them by name.


@DBOS.step()
def step(number):
    EFFECTS[-1](number)


@DBOS.workflow()
def work(steps):
    for number in range(steps):
        step(number)


class Engine:
    """The engine as `workload.main` drives it.

    Args:
        folder: where it keeps its database.
        effect: called within each step with the step's number, from 0.
    """

    def __init__(self, folder, effect):
        EFFECTS.append(effect)
        url = f"sqlite:///{folder}/dbos.sqlite"
        DBOS(
            config={
                "name": "bench",
                "system_database_url": url,
                "log_level": "ERROR",
                "run_admin_server": False,
            }
        )
        DBOS.launch()

    def run(self, name, steps):
        """Works on the run of that name until its end, from wherever it stands."""
        with SetWorkflowID(name):
            handle = DBOS.start_workflow(work, steps)
        handle.get_result()

    def close(self):
        DBOS.destroy()


if __name__ == "__main__":
    main(Engine, Path(sys.argv[1]), sys.argv[2:])
