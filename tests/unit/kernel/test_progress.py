"""What steps do to their run's head: money exact to the last digit, the log without a gap, what needs a person."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.objects import Attention, Run
from nodus_core.kernel.progress import begin, booked, fits, observations, recorded, resolve, settle
from nodus_core.kernel.states import FINAL_TASKS, RunState, TaskState
from nodus_core.kernel.tasks import Result, Task, Usage

from tests.unit.kernel.views import NOW, STOP, round_task, run, task

amounts = st.decimals(0, 10, allow_nan=False, allow_infinity=False, places=12)


def accounted(head: Run, open_tasks: list[Task]) -> Decimal:
    return head.available + head.spent + sum((item.reserved or ZERO for item in open_tasks), ZERO)


@pytest.mark.req("NOD-127", "NOD-128")
@given(
    cap=amounts,
    steps=st.lists(st.tuples(amounts, st.none() | amounts, st.booleans(), st.integers(0, 3)), max_size=12),
)
def test_every_dollar_of_the_cap_is_available_reserved_or_spent(
    cap: Decimal, steps: list[tuple[Decimal, Decimal | None, bool, int]]
) -> None:
    head, still_open = run(available=cap), list[Task]()
    for number, (reserve, cost, settles, _) in enumerate(steps, start=1):
        claim = task(f"r{number}", TaskState.RUNNING, reserved=reserve)
        if not fits(head, reserve):
            if reserve:
                with pytest.raises(ValueError, match="do not fit"):
                    begin(head, [claim])
            continue
        head = begin(head, [claim])
        still_open.append(claim)
        assert accounted(head, still_open) == cap
        if settles:
            done = still_open.pop(0)
            head = settle(head, [replace(done, state=TaskState.COMPLETED, cost=cost)])
        assert accounted(head, still_open) == cap
        assert head.open == {item.key for item in still_open}


def test_tenths_of_cents_add_up_exactly() -> None:
    head = run(available=Decimal("0.3"))
    for number in range(1, 4):
        claim = task(f"r{number}", TaskState.RUNNING, reserved=Decimal("0.1"))
        head = settle(begin(head, [claim]), [replace(claim, state=TaskState.COMPLETED, cost=Decimal("0.1"))])
    assert (head.available, head.spent) == (0, Decimal("0.3"))


@pytest.mark.req("NOD-128")
def test_an_unknown_cost_books_the_whole_reserve_and_a_known_one_gives_the_rest_back() -> None:
    claim = task("r1", TaskState.RUNNING, reserved=Decimal("0.25"))
    head = begin(run(), [claim])
    assert head.available == Decimal("0.75")
    unknown = settle(head, [replace(claim, state=TaskState.COMPLETED)])
    assert (unknown.available, unknown.spent) == (Decimal("0.75"), Decimal("0.25"))
    free = settle(head, [replace(claim, state=TaskState.FAILED, cost=ZERO)])
    assert (free.available, free.spent) == (Decimal(1), 0)
    assert booked(task("setup")) == 0


def test_what_has_happened_can_be_recorded_also_beyond_its_reserve() -> None:
    claim = task("r1", TaskState.RUNNING, reserved=Decimal("0.9"))
    dear = replace(claim, state=TaskState.COMPLETED, cost=Decimal("1.5"))
    head = settle(begin(run(), [claim]), [dear])
    assert (head.available, head.spent) == (Decimal("-0.5"), Decimal("1.5"))
    assert not fits(head, Decimal("0.000001"))
    assert begin(head, [task("r1t0", TaskState.RUNNING)]).open == {"r1t0"}


def test_a_refused_call_is_observed_though_it_never_began() -> None:
    head = settle(run(), [task("r1t0", TaskState.FAILED)])
    assert (head.seq, head.open, head.available) == (1, frozenset(), Decimal(1))


def test_only_final_tasks_settle() -> None:
    for state in set(TaskState) - FINAL_TASKS:
        with pytest.raises(ValueError, match="not final"):
            settle(run(), [task("r1", state)])


@pytest.mark.req("INV-44")
@given(batches=st.lists(st.integers(1, 4), max_size=6))
def test_observations_are_numbered_without_a_gap(batches: list[int]) -> None:
    head, seen = run(), list[int]()
    for index, size in enumerate(batches):
        tasks = [task(f"x{index}-{number}") for number in range(size)]
        seen += [entry.seq for entry in observations(head, tasks)]
        head = settle(head, tasks)
    assert seen == list(range(1, sum(batches) + 1))
    assert head.seq == sum(batches)


def test_an_observation_is_of_the_moment_at_which_the_task_ended() -> None:
    ended = replace(task("r1"), finished_at=NOW + timedelta(seconds=5))
    (entry,) = observations(run(seq=4), [ended])
    assert (entry.seq, entry.task, entry.state, entry.at) == (5, "r1", TaskState.COMPLETED, ended.finished_at)


@pytest.mark.req("NOD-085", "NOD-090")
def test_an_unknown_outcome_holds_the_run_and_says_what_is_not_known() -> None:
    at = NOW + timedelta(seconds=7)
    lost = task("r1t0", TaskState.UNCERTAIN, result=Result(error="SandboxLost"), finished_at=at)
    before = run(open=frozenset({"r1t0", "r1t1", "r1t2"}))
    head = settle(before, [lost, task("r1t1")])
    assert (head.state, head.seq, head.open) == (RunState.NEEDS_ATTENTION, 1, {"r1t0", "r1t2"})
    assert head.attention == (Attention("r1t0", "SandboxLost", at),)
    assert [entry.task for entry in observations(before, [lost, task("r1t1")])] == ["r1t1"]
    assert recorded(before, lost).finished_at is None  # it is asked for, not over
    later = settle(head, [task("r1t2", TaskState.UNCERTAIN)])
    assert [(item.task, item.what) for item in later.attention][1:] == [("r1t2", "OutcomeUnknown")]
    assert settle(later, [task("r1t3")]).state is RunState.NEEDS_ATTENTION


@pytest.mark.req("NODQ-55")
def test_a_run_is_held_until_every_outcome_is_resolved() -> None:
    lost = [task(key, TaskState.UNCERTAIN) for key in ("r1t0", "r1t1")]
    head = settle(run(open=frozenset({"r1t0", "r1t1"})), lost)
    half = resolve(head, "r1t0")
    assert ([item.task for item in half.attention], half.state) == (["r1t1"], RunState.NEEDS_ATTENTION)
    whole = resolve(half, "r1t1")
    assert (whole.attention, whole.state, whole.version) == ((), RunState.RUNNING, head.version + 2)
    assert whole.open == {"r1t0", "r1t1"}  # the line carries it out


def test_in_a_stopped_run_what_is_not_known_stays_so() -> None:
    stopped = run(open=frozenset({"r1t0"}), stop=STOP)
    lost = task("r1t0", TaskState.UNCERTAIN, finished_at=NOW)
    head = settle(stopped, [lost])
    assert (head.seq, head.open, head.attention) == (1, frozenset(), ())
    assert [entry.state for entry in observations(stopped, [lost])] == [TaskState.UNCERTAIN]
    assert recorded(stopped, lost).finished_at == NOW


@pytest.mark.req("FLD-03")
def test_cut_replies_are_counted_in_a_row() -> None:
    head = settle(run(), [round_task(1, error="cut"), task("r1t0", TaskState.FAILED)])
    assert head.cut_rounds == 1
    assert settle(head, [task("r1t1")]).cut_rounds == 1
    assert settle(head, [round_task(2, error="cut")]).cut_rounds == 2
    assert settle(head, [round_task(2)]).cut_rounds == 0


def test_rounds_calls_and_tokens_are_counted_and_each_commit_has_a_version() -> None:
    head = begin(run(), [task("route", TaskState.RUNNING)])
    assert head.rounds == 0
    head = begin(head, [task("r3", TaskState.RUNNING), task("r2t7", TaskState.RUNNING)])
    assert (head.rounds, head.version) == (3, 2)
    head = settle(head, [round_task(3, 2, usage=Usage(10, 3)), task("r2t7", usage=Usage(1, 1))])
    assert (head.calls, head.usage, head.version) == (2, Usage(11, 4), 3)
