"""What the daemon tells of the sandbox's use."""

import sys
from pathlib import Path

import pytest
from sandboxd.usage import Meter, measured

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.req("NOD-407", "NOD-416")
def test_it_measures_processors_memory_and_the_disk(tmp_path: Path) -> None:
    use = measured(str(tmp_path))
    assert use["memoryBytes"] > 1_000_000
    assert 0 < use["diskBytes"] <= use["diskSizeBytes"]
    assert use["cpuSeconds"] >= 0
    assert all(isinstance(amount, int) for amount in use.values())


def test_it_tells_once_a_minute_and_nothing_where_it_cannot_measure(tmp_path: Path) -> None:
    meter = Meter(str(tmp_path))
    assert meter.due() is not None
    assert meter.due() is None
    assert Meter(str(tmp_path / "gone")).due() is None
