"""The two layers: our code, and the locked third-party packages."""

from pathlib import Path

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.settings import Settings
from layers.deps.build import BUILD, Target, is_current

ROOT = Path(__file__).resolve().parents[2]
# What Python or a tool leaves beside the sources must change neither the assets nor their hashes.
LEFTOVERS = ["__pycache__", "*.pyc", ".*"]


class LayerNotBuiltError(Exception):
    """The third-party layer is missing, or was built from another lock file or for another target."""


class Layers(Construct):
    """`core`, which is `layers/core`, and `deps`, which is what `layers/deps/build.py` made.

    Synthesis never builds: that would need uv and an index of packages, and synthesis works offline.

    Args:
        deps: the built third-party layer; a test that only looks at the template may give any folder.

    Raises:
        LayerNotBuiltError: the third-party layer must be built first.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, deps: Path | None = None):
        super().__init__(scope, construct_id)
        core, packages = ROOT / "layers" / "core", deps or built_deps(settings)
        self.core = self._layer("Core", core, LEFTOVERS, settings, "Nodus itself")
        # The bytecode of the packages is part of the layer: see `compile_all` in layers/deps/build.py.
        self.deps = self._layer("Deps", packages, [".*"], settings, "Locked third-party packages")

    def _layer(
        self, name: str, folder: Path, leftovers: list[str], settings: Settings, description: str
    ) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            name,
            code=lambda_.Code.from_asset(str(folder), exclude=leftovers),
            compatible_runtimes=[runtime(settings)],
            compatible_architectures=[architecture(settings)],
            description=description,
        )


def built_deps(settings: Settings) -> Path:
    """The folder of the third-party layer, when it is what the lock file says.

    Raises:
        LayerNotBuiltError: it is missing or stale; the message holds the command to run.
    """
    target = Target(python=settings.python_version, architecture=settings.architecture)
    if is_current(target):
        return BUILD
    raise LayerNotBuiltError(
        f"The third-party layer in {BUILD} is missing or was not built from this uv.lock for Python "
        f"{target.python} on {target.architecture}. Run: python3 layers/deps/build.py "
        f"--python {target.python} --architecture {target.architecture}"
    )


def runtime(settings: Settings) -> lambda_.Runtime:
    """The Lambda runtime of the setting's Python."""
    return lambda_.Runtime(f"python{settings.python_version}", lambda_.RuntimeFamily.PYTHON)


def architecture(settings: Settings) -> lambda_.Architecture:
    """The Lambda architecture of the setting."""
    return {"x86_64": lambda_.Architecture.X86_64, "arm64": lambda_.Architecture.ARM_64}[
        settings.architecture
    ]
