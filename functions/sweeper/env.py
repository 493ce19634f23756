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
    subnets: str = Field(alias="NODUS_SUBNETS", min_length=1)
    security_group: str = Field(alias="NODUS_SECURITY_GROUP", min_length=1)
    warm_sandboxes: int = Field(alias="NODUS_WARM_SANDBOXES", ge=0)
    images: str = Field(alias="NODUS_IMAGES", min_length=1)
    link_api: str = Field(alias="NODUS_LINK_API_ID", min_length=1)
    link_stage: str = Field(alias="NODUS_LINK_STAGE", min_length=1)
    http_api: str = Field(alias="NODUS_HTTP_API_ID", min_length=1)
    secrets: str = Field(alias="NODUS_SECRETS", min_length=1)
    image_project: str = Field(alias="NODUS_IMAGE_PROJECT")
    image_repositories: str = Field(alias="NODUS_IMAGE_REPOSITORIES")
    image_platform: str = Field(alias="NODUS_IMAGE_PLATFORM")
