"""Where our code's time goes in the hot loop: a profile of it over the double, or over the local cloud."""

from __future__ import annotations

import cProfile
import io
import pstats

from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

from localstack.endpoints import Cloud
from tests.bench import cloud as clouds
from tests.bench.loop import Loop

SHOWN = 30


def profile(cloud: Cloud | None, rounds: int) -> str:
    """The functions that took most, by own and by whole time. Without a cloud: in memory."""
    if cloud is None:
        return _profiled(Loop(MemoryStore(), MemoryPayloads(), rounds))
    with clouds.own_table(cloud) as table:
        return _profiled(Loop(DynamoDbStore(clouds.wire(cloud), table), MemoryPayloads(), rounds))


def _profiled(loop: Loop) -> str:
    recorded = cProfile.Profile()
    recorded.runcall(loop.run)
    text = io.StringIO()
    stats = pstats.Stats(recorded, stream=text).strip_dirs()
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(SHOWN)
    return text.getvalue()
