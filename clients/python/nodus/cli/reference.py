"""The page docs/cli.md, made from the commands: `python -m nodus.cli.reference > docs/cli.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

HEAD = """\
# The command line `nodus`

Made from the commands by `python -m nodus.cli.reference > docs/cli.md`; a test compares.

An object is named `KIND/NAME`, several `KIND/NAME KIND/NAME` or `KIND NAME NAME`; `nodus api-resources` lists the
kinds and their short words. The options `-p/--project`, `--org` and `--context` stand before or after a command's
name. A command that is given several objects goes on when one of them is refused, and then ends with 1.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | refused, failed, or not within the time; stderr says `Error (<reason>): message`, and a line per field |
| 2 | `wait`: the object has ended in another phase; `diff`: there are differences |
| 130 | interrupted with Ctrl-C |

What was asked for goes to stdout, everything else to stderr. Text of prompts, answers and command outputs is shown,
never obeyed: in tables, in `logs` and `describe`, and in `agentrun answer` on a terminal, control characters appear
as `\\x1b`. `-o json` and `agentrun answer` into a pipe are exact. Colours and moving lines appear on a terminal only,
colours not where `NO_COLOR` is set.
"""
_PLACE = {"--project", "--org", "--context"}


def page() -> str:
    """The whole page."""
    from nodus.cli.main import nodus  # noqa: PLC0415 (the commands do not need this module)

    sections = [HEAD, *(_section(name, command) for name, command in _commands(nodus, "nodus"))]
    return "\n".join(sections)


def _commands(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if command is None:
            continue
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{prefix} {name}", command
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _section(name: str, command: click.Command) -> str:
    ctx = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [f"## `{name}`", "", "```", f"{name} {usage}", "```", "", *_help(command.help or "")]
    own = [
        param for param in command.params if isinstance(param, click.Option) and not _PLACE & {*param.opts}
    ]
    rows = [option.get_help_record(ctx) for option in own]
    options = [f"| `{record[0].replace('|', chr(92) + '|')}` | {record[1]} |" for record in rows if record]
    if options:
        lines += ["", "| option | meaning |", "|---|---|", *options]
    return "\n".join(lines) + "\n"


def _help(text: str) -> Iterator[str]:
    """The help's paragraphs; those after ``\\b`` are examples."""
    for number, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if number:
            yield ""
        if paragraph.startswith("\b"):
            yield from ("```bash", *(line.strip() for line in paragraph.splitlines()[1:]), "```")
        else:
            yield from paragraph.replace("*", "\\*").splitlines()


if __name__ == "__main__":
    click.echo(page(), nl=False)
