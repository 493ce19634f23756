"""The environment of the function `reactor`."""

from pydantic import BaseModel, ConfigDict, Field


class Environment(BaseModel):
    """What the deployment tells the function."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: str = Field(alias="NODUS_STAGE", min_length=1)
    table: str = Field(alias="NODUS_TABLE", min_length=1)
    line_machine: str = Field(alias="NODUS_LINE_MACHINE", min_length=1)
    bus: str = Field(alias="NODUS_BUS", min_length=1)
    link_api_id: str = Field(alias="NODUS_LINK_API_ID", min_length=1)
    link_stage: str = Field(alias="NODUS_LINK_STAGE", min_length=1)
    http_api_id: str = Field(alias="NODUS_HTTP_API_ID", min_length=1)
