"""Parts of a spec that say what stands in the sandbox (NOD-017 … NOD-023, NODQ-65, NODQ-70)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from nodus_core.resources.addresses import LONGEST_ADDRESS, why_not_public
from nodus_core.resources.checks import check
from nodus_core.resources.fields import (
    Digest,
    Folder,
    Host,
    Name,
    Ref,
    Repository,
    SecretField,
    Spec,
    Str,
    Variable,
    Whole,
    at_most,
    misplaced,
    problem,
    too_large,
)

MOST_STRIPPED = 16
"""Folders at the beginning of an archive's names that may be left away."""

MOST_HOSTS = 100
MOST_ALLOWED = 4096
"""Bytes that all hosts may take together: they travel in the task's overrides, of which ECS takes 8,192 characters."""
MOST_VARIABLES = 100
MOST_VALUE = 32_768
MOST_ENVIRONMENT = 131_072
"""Bytes that all variables may take together; an operating system hands no more to one program."""


class Continuity(Spec):
    """What of the workspace is saved."""

    mode: Literal["None", "Snapshotted"] = Field(
        description="`Snapshotted`: the folder `stateDir` is saved when the sandbox stops and is there when it starts "
        "again. `None`: files live as long as the sandbox."
    )
    state_dir: Folder | None = Field(
        default=None,
        description="The folder that is saved, an absolute one: the working folder, or one below it. Required with "
        "`Snapshotted`, refused with `None`.",
    )

    @model_validator(mode="after")
    def _folder(self) -> Self:
        if self.mode == "Snapshotted" and self.state_dir is None:
            raise misplaced("stateDir", "is required with mode Snapshotted")
        if self.mode == "None" and self.state_dir is not None:
            raise misplaced("stateDir", "goes only with mode Snapshotted")
        return self


class Git(Spec):
    """A repository at one commit, which a run keeps."""

    repo: Repository = Field(
        description="The repository as OWNER/NAME; a Connection of the project reads it."
    )
    ref: Ref | None = Field(
        default=None, description="A branch, a tag or a commit. Left out: the repository's default branch."
    )


@check(
    pattern="^https://", maxLength=LONGEST_ADDRESS, example="https://downloads.example.com/site-1.0.tar.gz"
)
def _archive_address(value: str) -> str:
    why = why_not_public(value, query=True)
    if why is not None:
        raise problem(why)
    return value


class Archive(Spec):
    """An archive at an address, as a run found it first."""

    url: Annotated[Str, _archive_address] = Field(
        description="Where it is: https, public, without a user name, at a host that the operator has allowed. A tar, "
        "packed by gzip, bzip2, xz or not at all, or a zip file. Whoever may read agents reads the address: it is no "
        "place for a secret."
    )
    sha256: Digest | None = Field(
        default=None,
        description="SHA-256 of the archive, in 64 small hexadecimal digits; another archive is refused. Left out: "
        "each run takes what it finds, and keeps it.",
    )
    strip_components: Annotated[Whole, Field(ge=0, le=MOST_STRIPPED)] | None = Field(
        default=None,
        description="Folders that are left away at the beginning of each name, with all that lies above them: 1 for "
        "archives that have one folder around all. Left out: 0.",
    )


class Source(Spec):
    """Where the workspace's files come from: a repository or an archive."""

    git: Git | None = Field(
        default=None, description="The repository whose files are copied, without its history."
    )
    archive: Archive | None = Field(default=None, description="The archive whose files are copied.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.git is None and self.archive is None:
            raise misplaced("git", "is required where there is no archive")
        if self.git is not None and self.archive is not None:
            raise misplaced("archive", "does not go with git")
        return self


def _travels(hosts: list[str]) -> list[str]:
    size = sum(len(host) + 1 for host in hosts)
    if size > MOST_ALLOWED:
        raise too_large(f"takes {size} bytes together, at most {MOST_ALLOWED} are taken")
    return hosts


class Egress(Spec):
    """The way out of a sandbox: by its proxy, for programs that honour HTTPS_PROXY and HTTP_PROXY."""

    policy: Literal["Deny", "AllowList", "Open"] = Field(
        description="`Deny`: nothing. `AllowList`: the hosts in `allow`. `Open`: the public internet, its web ports 80 "
        "and 443. Private, link-local and metadata addresses are closed whatever the policy."
    )
    allow: (
        Annotated[list[Host], Field(min_length=1, max_length=MOST_HOSTS), AfterValidator(_travels)] | None
    ) = Field(
        default=None,
        description="Names of hosts, such as api.github.com, on ports 80 and 443; `*.github.com` is every host below it, "
        "`github.com:22` another port. At most 4 KiB together. Required with `AllowList`, refused without.",
    )

    @model_validator(mode="after")
    def _hosts(self) -> Self:
        if self.policy == "AllowList" and self.allow is None:
            raise misplaced("allow", "is required with policy AllowList")
        if self.policy != "AllowList" and self.allow is not None:
            raise misplaced("allow", "goes only with policy AllowList")
        return self


class Network(Spec):
    """How a sandbox is connected."""

    egress: Egress = Field(description="What commands may reach.")


class EnvVar(Spec):
    """An environment variable."""

    name: Variable = Field(
        description="Name of the variable; of those that begin with NODUS_ only NODUS_SERVER, NODUS_TOKEN, NODUS_ORG, NODUS_PROJECT."
    )
    value: Annotated[Str, at_most(MOST_VALUE)] = Field(description="Its value, at most 32 KiB.")


class SecretVar(Spec):
    """A field of a project Secret as a variable."""

    name: Name = Field(description="Name of the Secret, of the same project.")
    env: Variable = Field(
        description="Name of the variable; of those that begin with NODUS_ only NODUS_SERVER, NODUS_TOKEN, NODUS_ORG, NODUS_PROJECT."
    )
    key: SecretField = Field(description="Field of the Secret that is its value.")


def _fits(variables: list[EnvVar]) -> list[EnvVar]:
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names):
        raise problem("names a variable twice")
    size = sum(len(variable.name) + len(variable.value.encode()) + 2 for variable in variables)
    if size > MOST_ENVIRONMENT:
        raise too_large(f"takes {size} bytes together, at most {MOST_ENVIRONMENT} are taken")
    return variables


def _once(variables: list[SecretVar]) -> list[SecretVar]:
    names = [variable.env for variable in variables]
    if len(set(names)) < len(names):
        raise problem("names a variable twice")
    return variables


def check_variables(env: list[EnvVar] | None, secrets: list[SecretVar] | None) -> None:
    """Raises a problem of the field `secrets` where both set one variable."""
    both = {variable.name for variable in env or ()} & {variable.env for variable in secrets or ()}
    if both:
        raise misplaced("secrets", f"sets a variable that env sets, too: {min(both)}")


Env = Annotated[list[EnvVar], Field(max_length=MOST_VARIABLES), AfterValidator(_fits)]
Secrets = Annotated[list[SecretVar], Field(max_length=MOST_VARIABLES), AfterValidator(_once)]
