"""Puts the faults into the emulated AWS."""

from __future__ import annotations

import os
from typing import Any

from localstack.cloud.gate import Application
from localstack.faults import control
from localstack.faults.executions import Executions
from localstack.faults.kicks import Kicks
from localstack.faults.refusals import Refusals
from localstack.faults.weather import Weather
from localstack.paths import State

SWITCH = "NODUS_FAULTS"
LOG = "faults.log"


class Plug:
    """Everything that can go wrong on purpose in one cloud."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._weather = Weather(state.logs / LOG)
        self._kicks = Kicks(self._weather)

    @classmethod
    def wanted(cls, state: State) -> Plug | None:
        """A plug, if the environment asks for one."""
        return cls(state) if os.environ.get(SWITCH) == "1" else None

    def around(self, application: Application) -> Application:
        """The application as functions meet it."""
        return Refusals(Executions(application, self._weather), self._weather)

    def into(self, workers: Any) -> None:
        """Disturb what calls functions: `localstack.cloud.workers`, after its `install`."""
        service = workers.lambda_service
        service._execute_function_warm = self._kicks.around(service._execute_function_warm)
        workers.FunctionWorker._exchange = self._kicks.watching(workers.FunctionWorker._exchange)

    async def listen(self) -> Any:
        """Take orders of tests."""
        return await control.serve(self._state, self._weather, self._kicks)
