"""Kind `Connection`: a code host that a project may read repositories from (NODQ-102, NOD-151)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from nodus_core.resources.addresses import LONGEST_ADDRESS, why_not_public
from nodus_core.resources.checks import check
from nodus_core.resources.columns import AGE, NAME, Column, Shown, pick, readiness
from nodus_core.resources.fields import (
    LONGEST_LABEL,
    Name,
    Repository,
    SecretField,
    Spec,
    Str,
    Whole,
    misplaced,
    problem,
)

MOST_REPOSITORIES = 500
LARGEST_INSTALLATION = 2**53 - 1
GITHUB = "https://github.com"


@check(pattern="^https://", maxLength=LONGEST_ADDRESS, example="https://git.example.com")
def _address(value: str) -> str:
    why = why_not_public(value)
    if why is not None:
        raise problem(why)
    return value.rstrip("/")


@check(minLength=1, maxLength=LONGEST_LABEL)
def _user(value: str) -> str:
    if not (0 < len(value) <= LONGEST_LABEL and value.isascii() and value.isprintable()) or ":" in value:
        raise problem(f"must be at most {LONGEST_LABEL} characters of ASCII, without a colon")
    return value


Listed = Annotated[list[Repository], Field(min_length=1, max_length=MOST_REPOSITORIES)]


class _Token(Spec):
    """The right to read, as a token in a Secret of the project."""

    token_secret: Name | None = Field(
        default=None,
        description="Name of the Secret of this project that holds a token which may read the repositories.",
    )
    token_field: SecretField | None = Field(
        default=None, description="Field of the Secret that is the token; needed where it has several."
    )

    @model_validator(mode="after")
    def _field_of_a_secret(self) -> Self:
        if self.token_field is not None and self.token_secret is None:
            raise misplaced("tokenField", "goes only with tokenSecret")
        return self


class GitHub(_Token):
    """Repositories at GitHub: by an installation of the operator's app, by a token, or such as everybody may read."""

    installation_id: Annotated[Whole, Field(ge=1, le=LARGEST_INSTALLATION)] | None = Field(
        default=None,
        description="Number that GitHub gave the installation of the operator's app. Not with `tokenSecret`.",
    )
    repositories: Listed | None = Field(
        default=None,
        description="The only repositories that may be read, as OWNER/NAME. Left out: all that the installation or "
        "the token may read. Required with neither: then they are read as everybody may.",
    )

    @model_validator(mode="after")
    def _one_right(self) -> Self:
        if self.installation_id is not None and self.token_secret is not None:
            raise misplaced("tokenSecret", "does not go with installationId")
        if self.installation_id is None and self.token_secret is None and self.repositories is None:
            raise misplaced("repositories", "is required without installationId and tokenSecret")
        return self


class GitHost(_Token):
    """Repositories at another host that speaks git's smart HTTP, as GitLab and Gitea do."""

    url: Annotated[Str, _address] = Field(
        description="Base address, which OWNER/NAME.git is added to. The operator must have allowed its host."
    )
    user: Annotated[Str, _user] | None = Field(
        default=None, description="User name that goes with the token, where the host asks for a certain one."
    )
    repositories: Listed = Field(description="The only repositories that may be read, as OWNER/NAME.")


class Local(Spec):
    """Bare repositories in the operator's folder, on the machine that runs Nodus."""

    repositories: Listed = Field(description="The repositories that may be read, as OWNER/NAME.")


_PARTS = {"GitHub": "github", "Git": "git", "Local": "local"}


class ConnectionSpec(Spec):
    """A code host that a project may read repositories from."""

    type: Literal["GitHub", "Git", "Local"] = Field(
        description="`GitHub`. `Git`: another host that the operator has allowed. `Local`: bare repositories on the "
        "machine of a local cloud. The field of the same name says more, and no other may be there."
    )
    github: GitHub | None = Field(default=None, description="What is read at GitHub, and by what right.")
    git: GitHost | None = Field(default=None, description="What is read at another host, and by what right.")
    local: Local | None = Field(default=None, description="What is read on the machine that runs Nodus.")

    @model_validator(mode="after")
    def _one_part(self) -> Self:
        for kind, part in _PARTS.items():
            given = getattr(self, part) is not None
            if given and kind != self.type:
                raise misplaced(part, f"goes only with type {kind}")
            if not given and kind == self.type:
                raise misplaced(part, f"is required with type {kind}")
        return self

    @property
    def place(self) -> GitHub | GitHost | Local:
        """What is read, and by what right."""
        found = self.github or self.git or self.local
        if found is None:
            raise TypeError("a connection without a place was accepted")
        return found

    def reads(self, repository: str) -> bool:
        """Whether it may be used for a repository; hosts take names whatever their case."""
        listed = self.place.repositories
        return listed is None or repository.lower() in {name.lower() for name in listed}


def _repositories(shown: Shown) -> str:
    part = _PARTS.get(str(pick(shown, "spec.type")), "")
    return ",".join(pick(shown, f"spec.{part}.repositories") or ())


COLUMNS = (
    NAME,
    Column("Type", "spec.type", "The code host."),
    Column("Ready", readiness, "Whether repositories are read through it, or why not."),
    AGE,
    Column("Repositories", _repositories, "The only ones that may be read.", priority=1),
)
