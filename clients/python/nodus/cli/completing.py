"""Words that the shell completes: kinds, and names asked from the server within a short bound."""

from __future__ import annotations

import signal
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from nodus import _config
from nodus._kinds import KINDS, Kind
from nodus.cli import picking
from nodus.cli.kinds import kind_of
from nodus.cli.session import Session
from nodus.errors import NodusError

SECONDS = 1.5  # longer than that nobody waits for a key press to be answered
MOST_NAMES = 500


def objects(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """``KIND/NAME``, or names after ``KIND``."""
    given: tuple[str, ...] = ctx.params.get(param.name or "") or ()
    word, slash, start = incomplete.partition("/")
    try:
        if slash:
            kind = kind_of(word)
            return [CompletionItem(f"{word}/{name}") for name in _names(ctx, kind, start)]
        if given and "/" not in given[0]:
            return [CompletionItem(name) for name in _names(ctx, kind_of(given[0]), incomplete)]
    except NodusError:  # no such kind
        return []
    return [CompletionItem(kind.word) for kind in KINDS if kind.word.startswith(incomplete)] + [
        CompletionItem(kind.plural) for kind in KINDS if kind.plural.startswith(incomplete)
    ]


def names(kind: Kind) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """The completion of an argument that is the name of an object of one kind."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in _names(ctx, kind, incomplete)]

    return complete


def contexts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of contexts."""
    try:
        return [CompletionItem(name) for name in _config.load().contexts if name.startswith(incomplete)]
    except NodusError:  # a file that cannot be read
        return []


class _Late(BaseException):
    """The bound has passed; no handler of ordinary errors may take it for one that can be tried again."""


def _names(ctx: click.Context, kind: Kind, start: str) -> list[str]:
    """Names that begin so, of one page and within the bound."""

    def late(signum: int, frame: object) -> None:
        raise _Late

    session = ctx.find_object(Session) or Session()
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        page = next(session.resource(kind).pages(limit=MOST_NAMES))
        found = [str(picking.pick(item.to_dict(), "metadata.name")) for item in page["items"]]
    except (NodusError, _Late):
        return []  # whoever presses a key is not told why nothing is offered
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        session.close()
    return [name for name in found if name.startswith(start)]
