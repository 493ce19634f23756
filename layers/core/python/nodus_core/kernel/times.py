"""Moments as text: RFC 3339, UTC, milliseconds. The text sorts as the moments do."""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """A moment as it is stored and shown."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def moment(text: str) -> datetime:
    """The moment that `stamp` wrote. Raises `ValueError`."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
