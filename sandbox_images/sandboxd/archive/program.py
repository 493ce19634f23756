"""The workers that pack and unpack, as a program for `python -I -S -c`: no file of the daemon is read to run them."""

from pathlib import Path

_FOLDER = Path(__file__).parent
_SHARED = "entries"
_BOOT = """\
import sys, types
module = types.ModuleType("sandboxd.archive.{shared}")
sys.modules[module.__name__] = module
exec(compile({source!r}, "{shared}", "exec"), module.__dict__)
exec(compile({worker!r}, "{name}", "exec"), {{"__name__": "__main__"}})
"""


def program(worker: str) -> str:
    """Source of the worker of this name (`packing`, `unpacking`), and of the module that it imports."""
    source, main = (_FOLDER.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in (_SHARED, worker))
    return _BOOT.format(shared=_SHARED, source=source, name=worker, worker=main)
