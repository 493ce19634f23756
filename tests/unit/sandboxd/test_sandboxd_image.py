"""The default image: what can be checked without building it."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMAGES = ROOT / "sandbox_images"
DOCKERFILE = (IMAGES / "agent-tools/Dockerfile").read_text()


def test_the_image_installs_what_the_lock_says() -> None:
    locked = {
        package["name"]: package for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    }
    requirements = (IMAGES / "agent-tools/requirements.txt").read_text()
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", requirements, re.MULTILINE))
    assert "aiohttp" in pinned
    for name, version in pinned.items():
        assert locked[name]["version"] == version, f"{name}: run the command in requirements.txt again"
        assert locked[name]["wheels"][0]["hash"] in requirements


def test_what_is_copied_into_the_image_is_there() -> None:
    sources = re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.MULTILINE)
    assert sources == ["agent-tools/requirements.txt", "sandboxd", "egress_proxy"]
    for source in sources:
        assert (IMAGES / source).exists()


def test_every_base_names_a_version() -> None:
    bases = re.findall(r"^ARG (?:DEBIAN|NODE|UV)=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert len(bases) == 3
    assert not [base for base in bases if ":" not in base or base.endswith(":latest")]
