"""`nodus completion`: what a shell needs to complete words of this program."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from nodus.cli.session import Command

VARIABLE = "_NODUS_COMPLETE"


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script with which a shell completes words.

    It completes commands, options, kinds and names of objects.

    \b
      source <(nodus completion bash)                                   # or in ~/.bashrc
      nodus completion zsh > "${fpath[1]}/_nodus"
      nodus completion fish > ~/.config/fish/completions/nodus.fish
    """
    found = get_completion_class(shell)
    if found is None:  # click knows the three; a person may have taken one away
        raise click.UsageError(f"no completion for {shell}", ctx)
    click.echo(found(ctx.find_root().command, {}, "nodus", VARIABLE).source())
