"""The values of a Secret as a command line gives them; no message repeats one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nodus.cli import sources
from nodus.cli.failures import usage

MOST_BYTES = 65_536  # the server keeps no more in one Secret


def read(literals: tuple[str, ...], files: tuple[str, ...]) -> dict[str, str]:
    """The fields that `--from-literal` and `--from-file` name.

    Raises:
        Failure: there is none, one is given twice, or a file cannot be read.
    """
    found: dict[str, str] = {}
    for field, value in (*_literals(literals), *_files(files)):
        if field in found:
            raise usage(f"field {field!r} is given twice")
        found[field] = value
    if not found:
        raise usage("give a value: --from-literal FIELD=VALUE, --from-file FIELD=FILE or --from-file FIELD=-")
    return found


def _literals(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for word in words:
        field, equals, value = word.partition("=")
        if not equals or not field:
            raise usage("--from-literal takes FIELD=VALUE")
        yield field, value


def _files(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for word in words:
        field, equals, name = word.partition("=")
        if not equals:
            field, name = Path(word).name, word
        if not field or field == "-" or not name:
            raise usage("--from-file takes FIELD=FILE, FIELD=- or FILE")
        yield field, sources.text(name, MOST_BYTES)
