"""Executions of the line machine in Step Functions."""

import json
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.kernel.ids import execution_name


class StepFunctionsExecutions:
    """`Executions` of one state machine. `client` is botocore's for Step Functions."""

    def __init__(self, client: Any, machine: str) -> None:
        """`machine` is the state machine's ARN."""
        self._client = client
        self._machine = machine

    def start(self, line: str, generation: int) -> None:
        name = execution_name(line, generation)
        with translated(f"starting execution {name}"):
            try:
                self._client.start_execution(
                    stateMachineArn=self._machine,
                    name=name,
                    input=json.dumps({"line": line, "generation": generation}),
                )
            except ClientError as error:
                # The name is the generation: whoever asked first has started what we want.
                if code_of(error) != "ExecutionAlreadyExists":
                    raise
