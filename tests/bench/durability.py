"""What it costs the local cloud that an answered write is on disk, beside a bare write that is synced."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from nodus_core.aws.dynamodb_wire import DynamoDbError, Wire

from localstack.cloud.durable import write_file
from localstack.cloud.write_ahead import WriteAheadLog
from localstack.testing import TestCloud
from tests.bench import cloud as clouds
from tests.bench.figures import Spread, Table

BYTES = 4096
TIMES = 100

NOTE = (
    "ms, median [min-max]. All in turn on the file system of the cloud's state. The floor writes 4 KiB behind the end of"
    " a file and syncs it. A put of an item of 4 KiB goes over the wire and is logged; one whose condition fails goes"
    " the same way, changes nothing and is not logged."
)

FLOOR, LOG, OBJECT = "floor: 4 KiB written and synced", "a request of 4 KiB logged", "an object of 4 KiB kept"
PUT, REFUSED = "a put over the wire, logged", "a refused put over the wire, not logged"


def measure(cloud: TestCloud, repeat: int) -> Table:
    """The table. `repeat`: hundreds of each."""
    spent: dict[str, list[float]] = {}
    with clouds.own_table(cloud.cloud) as table, _folder(cloud) as folder:
        actions = dict(_actions(clouds.wire(cloud.cloud), table, folder))
        for _ in range(repeat * TIMES):
            for name, action in actions.items():
                started = time.perf_counter()
                action()
                spent.setdefault(name, []).append((time.perf_counter() - started) * 1000)
    rows: list[tuple[Any, ...]] = [(name, Spread.of(values)) for name, values in spent.items()]
    rows.append(("**the log's ratio to the floor**", _ratio(spent[LOG], spent[FLOOR])))
    rows.append(("the log's cost, as seen by a caller", _difference(spent[PUT], spent[REFUSED])))
    return Table("Durability of the local cloud", ("what", "ms"), rows, NOTE)


def _actions(wire: Wire, table: str, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    text = "x" * (BYTES - 200)  # with its key, the request is 4 KiB
    log, headers = WriteAheadLog(folder / "log"), [(b"x-amz-target", b"DynamoDB_20120810.PutItem")]
    # Both are closed with the process: the measurement is all that it does.
    floor = os.open(folder / "floor", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write() -> None:
        os.write(floor, b"x" * BYTES)
        os.fsync(floor)

    def put(condition: str) -> None:
        item = {"pk": {"S": uuid.uuid4().hex}, "sk": {"S": "row"}, "text": {"S": text}}
        wire.call("PutItem", {"TableName": table, "Item": item, "ConditionExpression": condition})

    def refused() -> None:
        try:
            put("attribute_exists(pk)")
        except DynamoDbError as error:
            if error.code != "ConditionalCheckFailedException":
                raise

    yield FLOOR, write
    yield LOG, lambda: log.append("dynamodb", headers, text.encode())
    yield OBJECT, lambda: write_file(folder / uuid.uuid4().hex, text.encode())
    yield PUT, lambda: put("attribute_not_exists(pk)")
    yield REFUSED, refused


@contextmanager
def _folder(cloud: TestCloud) -> Iterator[Path]:
    folder = cloud.state.emulator / f"bench-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        yield folder
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def _parts(values: list[float]) -> Iterator[list[float]]:
    for start in range(0, len(values), TIMES):
        yield values[start : start + TIMES]


def _ratio(values: list[float], floors: list[float]) -> Spread:
    pairs = zip(_parts(values), _parts(floors), strict=True)
    return Spread.of([median(some) / median(least) for some, least in pairs])


def _difference(values: list[float], floors: list[float]) -> Spread:
    pairs = zip(_parts(values), _parts(floors), strict=True)
    return Spread.of([median(some) - median(least) for some, least in pairs])
