"""The one place where real things are built. A handler calls `core()` once, lazily; tests build their own."""

import os
from dataclasses import dataclass
from functools import cache, cached_property

from nodus_core.conversations.kicks import Kicks
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads
from nodus_core.journal.ports import Clock, Ids, NoCrash


@dataclass(frozen=True)
class Core:
    """Ports shared by all functions; each further adapter is built when it is first asked for.

    `environment` holds the variables of docs/protocols.md §5.
    """

    environment: dict[str, str]

    @cached_property
    def clock(self) -> Clock:
        from nodus_core.aws.system import SystemClock

        return SystemClock()

    @cached_property
    def ids(self) -> Ids:
        from nodus_core.aws.system import FreshIds

        return FreshIds()

    @cached_property
    def journal(self) -> Journal:
        from nodus_core.aws.clients import dynamodb
        from nodus_core.aws.dynamodb_store import DynamoDbStore

        store = DynamoDbStore(dynamodb(), self.environment["NODUS_TABLE"])
        return Journal(store, self.ids, NoCrash())

    @cached_property
    def payloads(self) -> Payloads:
        from nodus_core.aws.clients import s3
        from nodus_core.aws.s3_payloads import S3Payloads

        return S3Payloads(s3(), self.environment["NODUS_PAYLOADS"])

    @cached_property
    def kicks(self) -> Kicks:
        from nodus_core.aws.clients import stepfunctions
        from nodus_core.aws.executions import StepFunctionsExecutions

        executions = StepFunctionsExecutions(stepfunctions(), self.environment["NODUS_LINE_MACHINE"])
        return Kicks(self.journal, executions, self.clock)


@cache
def core() -> Core:
    """The process's one core."""
    return Core(dict(os.environ))
