"""The environment of the function `sweeper`."""

from pydantic import BaseModel, ConfigDict, Field


class Environment(BaseModel):
    """What the deployment tells the function."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: str = Field(alias="NODUS_STAGE", min_length=1)
    table: str = Field(alias="NODUS_TABLE", min_length=1)
    payloads: str = Field(alias="NODUS_PAYLOADS", min_length=1)
    line_machine: str = Field(alias="NODUS_LINE_MACHINE", min_length=1)
    cluster: str = Field(alias="NODUS_CLUSTER", min_length=1)
    task_definition: str = Field(alias="NODUS_TASK_DEFINITION", min_length=1)
    secrets: str = Field(alias="NODUS_SECRETS", min_length=1)
    image_project: str = Field(alias="NODUS_IMAGE_PROJECT")
    image_repositories: str = Field(alias="NODUS_IMAGE_REPOSITORIES")
    image_platform: str = Field(alias="NODUS_IMAGE_PLATFORM")
