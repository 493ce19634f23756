"""The command line of the local cloud."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext

from localstack import deploy as deployment
from localstack import supervise, tenant
from localstack.endpoints import Cloud, NoCloudError
from localstack.paths import State
from localstack.processes import PRIVATE_UMASK, ProcessError
from localstack.turns import turn


def main(arguments: list[str]) -> int:
    """Run one command; the exit code of the process. Those that change the cloud run one at a time."""
    os.umask(PRIVATE_UMASK)
    options = parser().parse_args(arguments)
    run: Callable[[State, argparse.Namespace], int] = options.run
    state = State.current()
    try:
        with turn(state) if run in CHANGING else nullcontext():
            return run(state, options)
    except (ProcessError, NoCloudError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m localstack", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    start = commands.add_parser("up", help="start the cloud and deploy the app to it")
    start.add_argument("--no-deploy", action="store_true", help="start the processes only")
    start.set_defaults(run=up)
    commands.add_parser("down", help="stop it; what it holds is kept").set_defaults(run=down)
    commands.add_parser("status", help="what runs, and where").set_defaults(run=status)
    follow = commands.add_parser("logs", help="show the logs")
    follow.add_argument("--follow", "-f", action="store_true", help="and wait for more")
    follow.set_defaults(run=logs)
    commands.add_parser("deploy", help="deploy the app, if anything changed").set_defaults(run=deploy)
    commands.add_parser("env", help="shell lines that point AWS tools to it").set_defaults(run=env)
    commands.add_parser("clean", help="stop it and remove what it holds").set_defaults(run=clean)
    return top


def up(state: State, options: argparse.Namespace) -> int:
    cloud = supervise.start(state)
    print(f"cloud: {cloud.endpoint}")
    if refusal := supervise.refusal(state):
        print(f"note: sandboxes are refused. {refusal}")
    return 0 if options.no_deploy else deploy(state, options)


def down(state: State, _options: argparse.Namespace) -> int:
    stopped = supervise.stop(state)
    print(f"stopped: {', '.join(stopped)}" if stopped else "nothing ran")
    return 0


def status(state: State, _options: argparse.Namespace) -> int:
    cloud = Cloud.load(state)
    for daemon in reversed(supervise.all_daemons(state)):
        pid = daemon.pid()
        print(f"{daemon.name:10} {f'running, pid {pid}' if pid else 'stopped'}")
    print(f"{'endpoint':10} {cloud.endpoint}")
    return 0


def logs(state: State, options: argparse.Namespace) -> int:
    files = sorted(str(path) for path in state.logs.glob("*.log"))
    if not files:
        raise NoCloudError(f"no logs in {state.logs}: start the local cloud with `make up`")
    return subprocess.run(
        ["tail", "-n", "40", *(["-F"] if options.follow else []), *files], check=False
    ).returncode


def deploy(state: State, _options: argparse.Namespace) -> int:
    cloud = deployment.deploy(state, supervise.start(state))
    tenant.fill_providers(state, cloud)  # before anything that a restart interrupted goes on
    supervise.warm(state)
    tenant.furnish(state, cloud)
    deployment.sweep(cloud)
    print(f"api: {cloud.api_url}")
    return 0


def env(state: State, _options: argparse.Namespace) -> int:
    for name, value in Cloud.load(state).environment().items():
        print(f"export {name}={value}")
    return 0


def clean(state: State, options: argparse.Namespace) -> int:
    down(state, options)
    state.remove()
    return 0


CHANGING = (up, down, deploy, clean)
