"""Processes of functions: a template imports the code, workers are its forks; packages and their log."""

import fcntl
import io
import os
import resource
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localstack.cloud import templates
from localstack.cloud.function_log import FunctionLog
from localstack.cloud.packages import PackageStore
from localstack.cloud.templates import Forked, Template, TemplateError

Make = Callable[[str], Template]


@pytest.fixture
def template(tmp_path: Path) -> Iterator[Make]:
    """Starts a template of a module with this text."""
    made: list[Template] = []

    def make(text: str) -> Template:
        (tmp_path / "module.py").write_text(text)
        setup: dict[str, Any] = {
            **{"code": str(tmp_path), "layers": [], "handler": "module.handler", "name": "probe"},
            **{"version": "$LATEST", "memory": 128},
        }
        made.append(Template(setup, {"PATH": os.defpath}))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_an_import_that_writes_a_lot_comes_to_its_end(template: Make) -> None:
    made = template("import sys\nsys.stderr.write('x' * 300_000)\ndef handler(event, context): return 1\n")
    assert made.alive()


def test_an_import_that_fails_says_what_it_wrote_last(template: Make) -> None:
    with pytest.raises(TemplateError, match=r"no such thing\n(.*\n)*.*the last line"):
        template(
            "import sys\nfor n in range(9999): print('line', n, file=sys.stderr)\n"
            "print('the last line', file=sys.stderr)\nraise ValueError('no such thing')\n"
        )


def test_a_worker_that_is_gone_at_once_is_an_error_that_leaves_nothing_open(
    template: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = template("def handler(event, context): return 1\n")

    def gone(_pid: int) -> int:
        raise ProcessLookupError("no such process")

    monkeypatch.setattr(templates.os, "pidfd_open", gone)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(TemplateError, match="no such process"):
        made.fork("stream")
    assert set(os.listdir("/proc/self/fd")) == before


def archive(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("module.py", text)
    return buffer.getvalue()


def test_a_package_in_use_is_not_an_old_one(tmp_path: Path) -> None:
    store = PackageStore(tmp_path)
    used, other = store.unpack(archive("a")), store.unpack(archive("b"))
    for folder, age in ((used, 1), (other, 2)):
        os.utime(folder, (age, age))
    assert store.unpack(archive("a")) == used
    store.keep_newest(1)
    assert list(tmp_path.iterdir()) == [used]


def test_the_log_of_functions_is_bounded_and_whole(tmp_path: Path) -> None:
    log = FunctionLog(tmp_path / "functions.log", limit_bytes=100)
    lines = [f"probe line {number}\n" for number in range(12)]
    for line in lines:
        log.write(line)
    log.close()
    newest, older = ((tmp_path / name).read_text() for name in ("functions.log", "functions.log.1"))
    assert max(len(newest), len(older)) <= 100
    assert lines[-1] in newest
    assert (older + newest).splitlines(keepends=True) == lines[-len((older + newest).splitlines()) :]


def test_a_worker_is_seen_to_by_a_descriptor_of_any_number() -> None:
    """A busy cloud has more than 1,024 open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1200:
        pytest.skip("this process may not open so many")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1200), hard))
    try:
        with subprocess.Popen(["sleep", "60"]) as process:
            low = os.pidfd_open(process.pid)
            worker = Forked(
                process.pid, fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1100), *(io.StringIO() for _ in range(3))
            )
            os.close(low)
            assert worker.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                worker.wait(0.01)
            worker.kill()
            assert worker.wait(30) == 0
            assert worker.poll() == 0
            del worker
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
