"""What every command knows: the options that choose the place, and the client made from them."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from nodus._client import Client
from nodus._kinds import Kind
from nodus._resources import Resource

if TYPE_CHECKING:
    from nodus.cli.tables import Rows

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Session:
    """The options ``--project``, ``--org`` and ``--context`` of this call."""

    project: str | None = None
    org: str | None = None
    context: str | None = None

    @cached_property
    def client(self) -> Client:
        """The client of the chosen place."""
        return Client(project=self.project, org=self.org, context=self.context)

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "client" in self.__dict__:
            self.client.close()

    def resource(self, kind: Kind, project: str | None = None) -> Resource:
        """The client's resource of a kind, in the chosen project or another."""
        return self.client.in_project(project).kind(kind.plural)

    def rows(self, kind: Kind, project: str | None = None, *, whole: bool = False) -> Rows:
        """The same for tables; ``whole``: with all of each object."""
        from nodus.cli.tables import Rows  # noqa: PLC0415 (only those who print tables pay for it)

        return Rows(self.client.in_project(project), kind, whole=whole)


def _remember(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    session = ctx.find_object(Session)
    if session is None:
        session = ctx.obj = Session()
        ctx.call_on_close(session.close)
    if value is not None and param.name:
        setattr(session, param.name, value)


def _place_options() -> list[click.Option]:
    """The options that stand before or after the command's name (NOD-498)."""
    return [
        click.Option(
            ["-p", "--project"],
            metavar="PROJECT",
            expose_value=False,
            callback=_remember,
            help="Project to use.",
        ),
        click.Option(
            ["--org"], metavar="ORG", expose_value=False, callback=_remember, help="Organization to use."
        ),
        click.Option(
            ["--context"],
            metavar="NAME",
            expose_value=False,
            callback=_remember,
            help="Context of the configuration file to use.",
        ),
        click.Option(["-n", "--namespace"], hidden=True, expose_value=False, callback=_no_namespace),
    ]


def _no_namespace(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(f"there are no namespaces; a project is chosen with -p: -p {value}", ctx)


_WHOLE_SENTENCE = 300
"""Characters that no first sentence has; the list of commands wraps them."""


class Command(click.Command):
    """A command that takes the options of the place, too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_place_options())

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first sentence: half of one may say the opposite ("and neither the sandbox nor...")."""
        return super().get_short_help_str(max(limit, _WHOLE_SENTENCE))


class Group(click.Group):
    """A group that names the nearest command when one does not exist, and reads a command's module when it is asked for.

    Args:
        later: command names in the order in which they are listed, and the module (below ``nodus.cli``) that holds
            the command under the same name, or under the one after a colon.
    """

    command_class = Command
    group_class = type
    instead: ClassVar[Mapping[str, str]] = {}
    """What is meant by commands that other tools have."""

    def __init__(self, *args: Any, later: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_place_options())
        self._later = dict(later or {})

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first sentence, as of a command."""
        return super().get_short_help_str(max(limit, _WHOLE_SENTENCE))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command."""
        word = args[0]
        if word.startswith("-") or self.get_command(ctx, word) is not None:
            return super().resolve_command(ctx, args)
        near = difflib.get_close_matches(word, self.list_commands(ctx), 1)
        instead = self.instead.get(word) or (repr(near[0]) if near else None)
        hint = f"; did you mean {instead}?" if instead else ""
        known = ", ".join(self.list_commands(ctx))
        raise click.UsageError(f"no command {word!r}{hint} Commands: {known}", ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of their registration, as one uses them, without further names for one."""
        own = (name for name, command in self.commands.items() if command.name == name)
        return list(dict.fromkeys((*self._later, *own)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, whose module is read only now: `nodus get` does not pay for `nodus explain`."""
        if cmd_name in self._later and cmd_name not in self.commands:
            module, _, attribute = self._later[cmd_name].partition(":")
            found = getattr(importlib.import_module(f"nodus.cli.{module}"), attribute or cmd_name)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)


pass_session = click.make_pass_decorator(Session, ensure=True)
