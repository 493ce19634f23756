"""`make demo`: an agent, a run, its steps as they happen, its answer; all by the command line that people use."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from localstack.paths import APP_BIN, ROOT, State
from localstack.processes import ProcessError
from localstack.tenant import configuration_path, context_name, read_configuration

AGENT = "examples/hello/agent.yaml"
RUN = "examples/hello/run.yaml"
NAME = "hello-agent-run"

GO_ON = """\
How to go on (first: export PATH={bin}:$PATH):
  nodus get agentrun/{run} -o yaml
      all there is to know about the run
  nodus create agentrun mine --agent hello-agent --prompt "Say hi"
      a run without a file; then: nodus agentrun steps mine --follow
  ANTHROPIC_API_KEY=… make up
      real models in the place of the scripted ones, which answer what examples/scripts/ knows
  make logs
      what happens behind it; make down stops it all and keeps what it holds
The client's configuration is {configuration}, context {context!r}.
"""


class DemoError(Exception):
    """A command of the demo failed; its own message is on the terminal already."""


def main() -> int:
    """Run the demo; the exit code of the process."""
    try:
        cli = Cli()
        if cli.succeeds("get", f"agentrun/{NAME}", "-o", "name"):
            cli.show("delete", f"agentrun/{NAME}")  # the demo's files name the run, and names are taken once
        cli.show("apply", "-f", AGENT)
        cli.show("apply", "-f", RUN)
        cli.show("agentrun", "steps", NAME, "--follow")
        condition = "--for=jsonpath={.status.phase}=Succeeded"
        cli.show("wait", f"agentrun/{NAME}", condition, "--timeout=8m")
        cli.show("agentrun", "answer", NAME)
        cli.show("agentrun", "steps", NAME)
        cli.show("get", f"agentrun/{NAME}", "-o", "wide")
    except DemoError as error:
        print(f"\nThe demo stopped: {error}. `make logs` shows what happened behind it.", file=sys.stderr)
        return 1
    except ProcessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    said = GO_ON.format(bin=APP_BIN, run=NAME, configuration=configuration_path(), context=cli.context)
    print(f"\n{said}", end="")
    return 0


class Cli:
    """The installed `nodus`, pointed at the local cloud whatever else the person's configuration holds."""

    def __init__(self) -> None:
        configuration = read_configuration(configuration_path())
        self.context = context_name(State.current(), configuration)
        current = configuration.get("current-context")
        self._context = [] if current == self.context else ["--context", self.context]
        overriding = {"NODUS_SERVER", "NODUS_TOKEN", "NODUS_ORG", "NODUS_PROJECT"}
        self._environment = {name: value for name, value in os.environ.items() if name not in overriding}

    def show(self, *words: str) -> None:
        """Print the command as a person would type it, then run it on this terminal.

        Raises:
            DemoError: it failed.
        """
        print(f"\n$ nodus {shlex.join([*words, *self._context])}", flush=True)
        done = subprocess.run(self._command(words), cwd=ROOT, env=self._environment, check=False)
        if done.returncode != 0:
            raise DemoError(f"`nodus {words[0]}` ended with exit code {done.returncode}")
        sys.stdout.flush()

    def succeeds(self, *words: str) -> bool:
        """Run a command unseen."""
        done = subprocess.run(
            self._command(words), cwd=ROOT, env=self._environment, capture_output=True, check=False
        )
        return done.returncode == 0

    def _command(self, words: Sequence[str]) -> list[str]:
        return [str(APP_BIN / "nodus"), *words, *self._context]


if __name__ == "__main__":
    sys.exit(main())
