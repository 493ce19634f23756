"""The environment of the function `api`."""

from nodus_core.conversations.watching import LONGEST_WINDOW_S
from pydantic import BaseModel, ConfigDict, Field


class Environment(BaseModel):
    """What the deployment tells the function."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: str = Field(alias="NODUS_STAGE", min_length=1)
    table: str = Field(alias="NODUS_TABLE", min_length=1)
    payloads: str = Field(alias="NODUS_PAYLOADS", min_length=1)
    line_machine: str = Field(alias="NODUS_LINE_MACHINE", min_length=1)
    secrets: str = Field(alias="NODUS_SECRETS", min_length=1)
    secrets_key: str = Field(alias="NODUS_SECRETS_KEY", min_length=1)
    schedule_group: str = Field(alias="NODUS_SCHEDULE_GROUP", min_length=1)
    schedule_target: str = Field(alias="NODUS_SCHEDULE_TARGET", min_length=1)
    schedule_role: str = Field(alias="NODUS_SCHEDULE_ROLE", min_length=1)
    watch_window: float = Field(alias="NODUS_WATCH_WINDOW", ge=0, le=LONGEST_WINDOW_S)
    link_api: str = Field(alias="NODUS_LINK_API_ID", min_length=1)
    link_stage: str = Field(alias="NODUS_LINK_STAGE", min_length=1)
    http_api: str = Field(alias="NODUS_HTTP_API_ID", min_length=1)
    server_names: str = Field(alias="NODUS_SERVER_NAMES")
    images: str = Field(alias="NODUS_IMAGES", min_length=1)
    image_repositories: str = Field(alias="NODUS_IMAGE_REPOSITORIES")
    gpus: str = Field(alias="NODUS_GPUS")
    key_rate: int = Field(alias="NODUS_KEY_RATE", ge=1)
    key_burst: int = Field(alias="NODUS_KEY_BURST", ge=1)
    github_app: str = Field(alias="NODUS_GITHUB_APP")
    git_hosts: str = Field(alias="NODUS_GIT_HOSTS")
    git_folder: str = Field(alias="NODUS_GIT_FOLDER")
    archive_hosts: str = Field(alias="NODUS_ARCHIVE_HOSTS")
