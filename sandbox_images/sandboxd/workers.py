"""Programs of processes that run as the commands' user, made of the sources of some of the daemon's modules.

They are handed to `python -I -S -c`: the process imports nothing of the daemon, and no file of the daemon has to be
readable for commands. So those modules import the standard library and one another, each what stands before it.
"""

import json
from pathlib import Path

_LOADER = """
import json, sys, types
package = types.ModuleType("sandboxd")
sys.modules["sandboxd"] = package
folder, sources = json.loads(sys.argv.pop(1))
below = sys.modules["sandboxd." + folder] = types.ModuleType("sandboxd." + folder)
setattr(package, folder, below)
for name, source in sources:
    module = types.ModuleType("sandboxd." + folder + "." + name)
    sys.modules[module.__name__] = module
    setattr(below, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
module.main()
"""


def worker(interpreter: str, folder: str, *modules: str) -> tuple[str, ...]:
    """The arguments of a process that makes modules of the daemon's folder of this name; the last one does the work.

    Args:
        interpreter: Python that the commands' user can execute.
    """
    place = Path(__file__).with_name(folder)
    sources = [(name, (place / f"{name}.py").read_text(encoding="utf-8")) for name in modules]
    return interpreter, "-I", "-S", "-c", _LOADER, json.dumps((folder, sources))
