"""The environment of the function `link`."""

from pydantic import BaseModel, ConfigDict, Field


class Environment(BaseModel):
    """What the deployment tells the function."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: str = Field(alias="NODUS_STAGE", min_length=1)
    table: str = Field(alias="NODUS_TABLE", min_length=1)
    link_api: str = Field(alias="NODUS_LINK_API_ID", min_length=1)
    link_stage: str = Field(alias="NODUS_LINK_STAGE", min_length=1)
    http_api: str = Field(alias="NODUS_HTTP_API_ID", min_length=1)
    payloads: str = Field(alias="NODUS_PAYLOADS", min_length=1)
    secrets: str = Field(alias="NODUS_SECRETS", min_length=1)
