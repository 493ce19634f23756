"""The program `nodus`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import ClassVar

import click

from nodus._version import __version__
from nodus.cli import failures
from nodus.cli.session import Group
from nodus.errors import NodusError

COMMANDS = {
    "login": "login",
    "logout": "login",
    "whoami": "whoami",
    "apply": "apply",
    "create": "create",
    "get": "get",
    "describe": "describe",
    "wait": "wait",
    "logs": "logs",
    "agentrun": "agentrun",
    "sandbox": "sandbox",
    "label": "labels",
    "annotate": "labels",
    "patch": "change",
    "replace": "apply",
    "diff": "apply",
    "cancel": "change",
    "start": "machines",
    "stop": "machines",
    "delete": "change",
    "explain": "explain",
    "api-resources": "resources:api_resources",
    "config": "contexts:config",
    "completion": "completion",
    "version": "version",
}
"""Every command, in the order in which one meets them, and its module."""


class Program(Group):
    """The program, which knows what others call its commands."""

    instead: ClassVar[Mapping[str, str]] = {
        "auth": "`nodus whoami`",
        "edit": "`nodus patch`, or `nodus apply`",
    }


@click.group(
    cls=Program,
    later=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, message="nodus %(version)s")
def nodus() -> None:
    """Run AI agents as durable, exactly-once work.

    \b
      nodus login --server URL              sign in
      nodus apply -f agent.yaml             define an agent
      nodus create agentrun NAME …          give it a task
      nodus logs -f agentrun/NAME           watch it work
      nodus agentrun answer NAME            read its answer
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        arguments: the words after the program's name; ``None``: those of this process.

    Returns:
        The exit code: 0, 1 on every error, 2 when `wait` or `diff` finds it otherwise, 130 when interrupted.
    """
    try:
        code = nodus.main(arguments, prog_name="nodus", standalone_mode=False)
        sys.stdout.flush()
    except NodusError as error:
        failures.show(error)
        return getattr(error, "exit_code", failures.FAILED)
    except click.ClickException as error:
        _show_usage(error)
        return failures.FAILED
    except click.exceptions.Abort:
        click.echo("Interrupted.", err=True)
        return failures.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`nodus get ar | head`): nobody to tell, and nothing more to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.FAILED
    return code if isinstance(code, int) else 0


def _show_usage(error: click.ClickException) -> None:
    click.echo(f"Error (Usage): {error.format_message()}", err=True)
    ctx = getattr(error, "ctx", None)
    if ctx is not None:
        click.echo(ctx.get_usage(), err=True)
        click.echo(f"Help: {ctx.command_path} --help", err=True)


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no Unicode shows escapes instead of ending the program.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())
