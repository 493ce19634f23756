"""How long an adapter goes on trying."""

import pytest
from nodus_core.aws.patience import Patience


class _Time:
    """Time that passes in sleep only."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


def _patience(time: _Time, part: float = 1.0, **more: float) -> Patience:
    return Patience(sleep=time.sleep, elapsed=lambda: time.now, part=lambda: part, **more)  # type: ignore[arg-type]


def test_pauses_grow_to_a_bound() -> None:
    time = _Time()

    assert list(_patience(time, first_s=0.1, most_s=0.5, tries=6).attempts()) == [1, 2, 3, 4, 5, 6]
    assert time.pauses == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_pauses_are_a_random_part() -> None:
    time = _Time()

    list(_patience(time, part=0.5, first_s=0.1, tries=3).attempts())

    assert time.pauses == [0.05, 0.1]


def test_no_attempt_begins_after_the_end() -> None:
    time = _Time()
    begun: list[float] = []

    for _ in _patience(time, seconds=1.0, first_s=0.4, tries=100).attempts():
        begun.append(time.now)
        time.now += 0.2

    assert begun == pytest.approx([0.0, 0.6])
    assert time.now <= 1.0


def test_success_ends_the_attempts_without_a_pause() -> None:
    time = _Time()

    for _ in _patience(time).attempts():
        break

    assert time.pauses == []


def test_patience_can_be_shorter_for_one_call_and_not_longer() -> None:
    usual = Patience(seconds=10.0)
    assert usual.within(3.0).seconds == 3.0
    assert usual.within(30.0) is usual
    assert usual.within(None) is usual
