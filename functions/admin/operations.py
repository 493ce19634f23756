"""What the operator may ask for (docs/protocols.md §5), read strictly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from nodus_core.access.door import SYSTEM_ORG, SYSTEM_PROJECT
from nodus_core.billing.credits import Credits
from nodus_core.conversations.directory import Directory
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.templates import Templates
from nodus_core.journal.access import Access
from nodus_core.journal.ports import Ids
from nodus_core.kernel.errors import Cause, Refusal
from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class CreateOrganization(_Request):
    operation: Literal["CreateOrganization"]
    organization: str


class CreateProject(_Request):
    operation: Literal["CreateProject"]
    organization: str
    project: str


class CreateKey(_Request):
    operation: Literal["CreateKey"]
    organization: str
    name: str
    projects: list[str]
    permissions: list[str]


class MapIdentity(_Request):
    operation: Literal["MapIdentity"]
    organization: str
    arn: str
    projects: list[str]
    permissions: list[str]


class UnmapIdentity(_Request):
    operation: Literal["UnmapIdentity"]
    organization: str
    arn: str


class GetIdentity(_Request):
    operation: Literal["GetIdentity"]
    arn: str


class AddCredits(_Request):
    operation: Literal["AddCredits"]
    organization: str
    amount: str = Field(alias="amountUSD")
    request_key: str = Field(alias="requestKey")


class SetCredits(_Request):
    operation: Literal["SetCredits"]
    organization: str
    remaining: str = Field(alias="remainingUSD")
    request_key: str = Field(alias="requestKey")


class GetCredits(_Request):
    operation: Literal["GetCredits"]
    organization: str


class PublishTemplates(_Request):
    operation: Literal["PublishTemplates"]


Request = (
    CreateOrganization
    | CreateProject
    | CreateKey
    | MapIdentity
    | UnmapIdentity
    | GetIdentity
    | AddCredits
    | SetCredits
    | GetCredits
    | PublishTemplates
)


def read(event: Mapping[str, Any]) -> Request:
    """The request in an event. Raises `Refusal` `BadRequest` naming what is not right."""
    known: dict[str, type[Request]] = {model.__name__: model for model in get_args(Request)}
    model = known.get(str(event.get("operation")))
    if model is None:
        raise Refusal("BadRequest", f"operation must be one of {', '.join(known)}")
    try:
        return model.model_validate(dict(event))
    except ValidationError as error:
        causes = tuple(
            Cause(".".join(map(str, item["loc"])), item["msg"])
            for item in error.errors(include_url=False, include_input=False)
        )
        listed = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
        raise Refusal("BadRequest", f"{model.__name__}: {listed}", causes=causes) from None


@dataclass(frozen=True)
class Operations:
    """The operator's use cases over a shelf."""

    directory: Directory
    credits: Credits
    templates: Templates

    @classmethod
    def over(cls, shelf: Shelf, ids: Ids) -> Self:
        journal, clock = shelf.journal, shelf.clock
        return cls(
            Directory.over(shelf, ids),
            Credits(Access(journal.writer), journal.accounts, journal.ledger, clock),
            Templates(journal, clock, ids),
        )

    def perform(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Does what is asked for; all but `CreateKey` may be repeated. Raises `Refusal`."""
        match read(event):
            case CreateOrganization() | CreateProject() | CreateKey() as made:
                return self._make(made)
            case MapIdentity() | UnmapIdentity() | GetIdentity() as mapping:
                return self._map(mapping)
            case AddCredits() as put:
                return self.credits.add(put.organization, put.amount, put.request_key)
            case SetCredits() as left:
                return self.credits.set(left.organization, left.remaining, left.request_key)
            case GetCredits(organization=organization):
                return self.credits.read(organization)
            case PublishTemplates():
                self.directory.create_organization(SYSTEM_ORG)
                self.directory.create_project(SYSTEM_ORG, SYSTEM_PROJECT)
                return {"published": self.templates.publish()}

    def _make(self, made: CreateOrganization | CreateProject | CreateKey) -> dict[str, Any]:
        directory = self.directory
        match made:
            case CreateOrganization(organization=organization):
                return {"created": directory.create_organization(organization)}
            case CreateProject(organization=organization, project=project):
                return {"created": directory.create_project(organization, project)}
            case CreateKey() as key:
                return {
                    "token": directory.create_key(key.organization, key.name, key.projects, key.permissions)
                }

    def _map(self, mapping: MapIdentity | UnmapIdentity | GetIdentity) -> dict[str, Any]:
        directory = self.directory
        match mapping:
            case MapIdentity() as said:
                arn = directory.map_identity(said.organization, said.arn, said.projects, said.permissions)
                return {"arn": arn}
            case UnmapIdentity() as said:
                return {"removed": directory.unmap_identity(said.organization, said.arn)}
            case GetIdentity(arn=arn):
                return {
                    "mappings": [
                        {
                            "organization": known.org,
                            "projects": list(known.projects),
                            "permissions": list(known.permissions),
                        }
                        for known in directory.identity(arn)
                    ]
                }
