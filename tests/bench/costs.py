"""USD of a step on AWS, from what was counted: the journal's units, and what a deployed run used."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from tests.bench import prices
from tests.bench.billed import TYPICAL_S, Counted
from tests.bench.figures import Table
from tests.bench.loop import STEPS_A_ROUND
from tests.bench.recording import DAEMON, WORKER
from tests.bench.usage import FUNCTIONS, Use

PER = 1000
NOTE = (
    f"USD by {prices.SEEN}. Not in it: the model's tokens, the sandbox's compute (Fargate), storage, logs, data"
    " transfer, connection minutes, polling by clients, and the sweeper (a call a minute for the whole installation)."
    " Lambda's seconds were measured here, on emulated AWS with a model that answers at once; every second that a"
    " worker waits for a model or a command is in the last row."
)


def used_table(short: Use, long: Use, rounds: int) -> Table:
    """What deployed runs of one and of `rounds` rounds used, and what one more round adds."""
    rows = [(f"calls of {name}", short.calls[name], long.calls[name]) for name in FUNCTIONS]
    rows += [
        (f"GB-s of {name}", short.gigabyte_seconds(name), long.gigabyte_seconds(name)) for name in FUNCTIONS
    ]
    rows += [
        ("executions", short.executions, long.executions),
        ("state transitions", short.transitions, long.transitions),
        ("stream records to the reactor", short.records, long.records),
    ]
    shown = [(name, one, many, (many - one) / (rounds - 1)) for name, one, many in rows]
    columns = ("a deployed run", "1 round", f"{rounds} rounds", "for each further round")
    return Table("Lambda, Step Functions, stream", columns, shown, "Calls of api: the creation alone.")


def cost_table(counted: Counted, short: Use, long: Use, rounds: int) -> Table:
    """USD per thousand rounds, journal steps and runs."""
    journal = counted.a_round(WORKER), counted.a_round(DAEMON)
    a_round = {
        "DynamoDB": _journal(journal[0]) + _journal(journal[1]),
        "Lambda": (_lambda(long) - _lambda(short)) / (rounds - 1),
        "API Gateway (link, bell)": (_link(long) - _link(short)) / (rounds - 1) + prices.SOCKET_MESSAGE,
        "Step Functions": (_states(long) - _states(short)) / (rounds - 1),
    }
    beside = {
        "DynamoDB": _journal(counted.outside_rounds),
        "Lambda": _lambda(short) - a_round["Lambda"],
        "API Gateway (link, bell)": _link(short) + prices.HTTP_CALL - a_round["API Gateway (link, bell)"],
        "Step Functions": _states(short) - a_round["Step Functions"],
    }
    rows = [_row(name, a_round[name], beside[name]) for name in a_round]
    rows.append(_row("all", sum(a_round.values(), Decimal(0)), sum(beside.values(), Decimal(0))))
    second = prices.LAMBDA_GB_SECOND * _exact(long.memory_gb["line"]) * PER
    rows.append(("a second of waiting in each", float(second), float(second) / STEPS_A_ROUND, float(second)))
    columns = (
        f"USD per {PER:,}",
        f"rounds (a model call, a command of {TYPICAL_S:g} s)",
        "journal steps",
        "runs, beside their rounds",
    )
    return Table("Cost on AWS", columns, rows, NOTE)


def _row(name: str, a_round: Decimal, beside: Decimal) -> tuple[str, float, float, float]:
    return name, float(a_round * PER), float(a_round / STEPS_A_ROUND * PER), float(beside * PER)


def _journal(used: Mapping[str, float]) -> Decimal:
    return (
        _exact(used.get("write_units", 0)) * prices.WRITE_UNIT
        + _exact(used.get("read_units", 0)) * prices.READ_UNIT
        + _exact(used.get("payload_puts", 0)) * prices.PAYLOAD_PUT
        + _exact(used.get("payload_gets", 0)) * prices.PAYLOAD_GET
    )


def _lambda(use: Use) -> Decimal:
    return sum(
        (
            use.calls[name] * prices.LAMBDA_REQUEST
            + _exact(use.gigabyte_seconds(name)) * prices.LAMBDA_GB_SECOND
            for name in FUNCTIONS
        ),
        Decimal(0),
    )


def _link(use: Use) -> Decimal:
    return use.calls["link"] * prices.HTTP_CALL


def _states(use: Use) -> Decimal:
    return use.transitions * prices.STATE_TRANSITION


def _exact(value: float) -> Decimal:
    return Decimal(str(value))
