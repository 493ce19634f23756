"""`nodus sandbox files …`: the files of a running sandbox."""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path

import click

from nodus._files import MOST_INLINE_BYTES
from nodus.cli import formats, printing, text
from nodus.cli.failures import usage
from nodus.cli.picking import pick
from nodus.cli.session import Command, Group, Session, pass_session

HEADER = ["TYPE", "MODE", "SIZE", "MODIFIED", "NAME"]
path_argument = click.argument("path")
MIB = 1024 * 1024


@click.group(cls=Group)
def files() -> None:
    """Look at files of a running sandbox, fetch, save, move and remove them.

    Paths count from its working folder. Files last as long as the machine; of a stopped sandbox only its saved folder (spec.continuity) comes back.
    """


@files.command(cls=Command)
@click.argument("name")
@click.argument("path", default=".")
@formats.output_option(("table", "json"), templates=False)
@pass_session
def ls(session: Session, name: str, path: str, output: formats.Format) -> None:
    """List a folder."""
    found = [entry.to_dict() for entry in session.client.sandboxes.files(name, path)]
    printing.below("SandboxFileList", found, output, HEADER, _row)


@files.command(cls=Command)
@click.argument("name")
@path_argument
@pass_session
def cat(session: Session, name: str, path: str) -> None:
    """Print a file; on a terminal, control characters are made visible."""
    content = session.client.sandboxes.read_file(name, path).content
    if sys.stdout.isatty():
        shown = content.decode("utf-8", "replace")
        click.echo(text.block(shown), nl=not shown.endswith("\n"))
    else:
        sys.stdout.buffer.write(content)


@files.command(cls=Command)
@click.argument("name")
@path_argument
@click.argument("local", type=click.Path(path_type=Path), required=False)
@pass_session
def get(session: Session, name: str, path: str, local: Path | None) -> None:
    """Fetch a file; LOCAL is where it goes (default: its name, here).

    \b
      nodus sandbox files get dev report.pdf
      nodus sandbox files get dev out/data.csv /tmp/
    """
    target = _target(local or Path(), path)
    found = session.client.sandboxes.read_file(name, path, progress=_Shown(f"fetching {text.line(path)}").add)
    part = target.with_name(f".{target.name[:200]}.part")
    part.write_bytes(found.content)
    part.replace(target)
    click.echo(f"{text.line(str(target))}: {len(found.content)} bytes")


@files.command(cls=Command)
@click.argument("name")
@click.argument("local", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@click.argument("path", required=False)
@click.option("--if-match", metavar="ETAG", help="Only if the file is still this version (ls -o json).")
@click.option("--new", is_flag=True, help="Only if there is no such file.")
@click.option(
    "--mode", metavar="BITS", help="Permission bits such as 0755 (default: the file's own, or 0644)."
)
@click.option("--parents", is_flag=True, help="Make the folders above it.")
@pass_session
def put(
    session: Session,
    name: str,
    local: Path,
    path: str | None,
    *,
    if_match: str | None,
    new: bool,
    mode: str | None,
    parents: bool,
) -> None:
    """Save the local file LOCAL (- for standard input) as PATH (default: its name) in the sandbox.

    \b
      nodus sandbox files put dev in.csv
      nodus sandbox files put dev ./build.sh bin/build.sh --mode 0755 --parents
    """
    if path is None and str(local) == "-":
        raise usage("what comes from standard input has no name; give PATH, too")
    content = sys.stdin.buffer.read() if str(local) == "-" else local.read_bytes()
    target = path or local.name
    if target.endswith("/"):
        target = posixpath.join(target, local.name)
    progress = _Shown(f"saving {text.line(target)}", len(content)).add
    saved = session.client.sandboxes.write_file(
        name,
        target,
        content,
        if_match=_version(if_match),
        new=new,
        mode=mode,
        parents=parents,
        progress=progress if len(content) > MOST_INLINE_BYTES else None,
    )
    click.echo(f"{text.line(target)}: {saved.size} bytes, version {text.line(saved.etag)}")


@files.command(cls=Command)
@click.argument("name")
@path_argument
@click.argument("to")
@click.option("--overwrite", is_flag=True, help="Replace a file that has this path.")
@click.option("--parents", is_flag=True, help="Make the folders above it.")
@pass_session
def mv(session: Session, name: str, path: str, to: str, *, overwrite: bool, parents: bool) -> None:
    """Give a file or folder another path."""
    session.client.sandboxes.move_file(name, path, to, overwrite=overwrite, parents=parents)
    click.echo(f"{text.line(path)} moved to {text.line(to)}")


@files.command(cls=Command)
@click.argument("name")
@path_argument
@click.option("-r", "--recursive", is_flag=True, help="A folder goes with all that is in it.")
@pass_session
def rm(session: Session, name: str, path: str, *, recursive: bool) -> None:
    """Remove a file, a link or a folder."""
    session.client.sandboxes.remove_file(name, path, recursive=recursive)
    click.echo(f"{text.line(path)} removed")


@files.command(cls=Command)
@click.argument("name")
@path_argument
@pass_session
def mkdir(session: Session, name: str, path: str) -> None:
    """Make a folder and those above it."""
    session.client.sandboxes.make_folder(name, path)
    click.echo(f"{text.line(path)} made")


def _version(etag: str | None) -> str | None:
    """A version as the server writes it; a shell has taken the quotes off what one copies."""
    if etag is None or '"' in etag or etag == "*":
        return etag
    return f'"{etag}"'


class _Shown:
    """How far a large content is, on standard error: a line that is written over on a terminal, else one in ten."""

    def __init__(self, what: str, size: int | None = None) -> None:
        self._what, self._size = what, size
        self._done = self._told = 0

    def add(self, count: int) -> None:
        """So many more bytes have come or gone."""
        self._done += count
        ended = self._done == self._size
        if self._done - self._told < 10 * MIB and not ended:
            return
        self._told = self._done
        of = "" if self._size is None else f" of {self._size / MIB:.0f}"
        end = "\r" if sys.stderr.isatty() and not ended else "\n"
        click.echo(f"{self._what}: {self._done / MIB:.0f}{of} MiB{end}", nl=False, err=True)


def _target(local: Path, path: str) -> Path:
    """Where a fetched file goes: never where a name of the sandbox leads by itself."""
    if not local.is_dir():
        return local
    name = posixpath.basename(path.rstrip("/"))
    if name in ("", ".", "..") or "\0" in name:
        raise usage(f"{text.line(path)} gives no name for the file here; say LOCAL")
    return local / name


def _row(entry: dict[str, object]) -> list[str]:
    name = str(pick(entry, "name"))
    shown = f"{name} -> {pick(entry, 'target')}" if pick(entry, "target") else name
    columns = (pick(entry, word) for word in ("type", "mode", "size", "modifiedAt"))
    return [*("" if value is None else text.line(str(value)) for value in columns), text.line(shown)]
