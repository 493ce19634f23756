"""The environment of the function `line`."""

from pydantic import BaseModel, ConfigDict, Field


class Environment(BaseModel):
    """What the deployment tells the function."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    stage: str = Field(alias="NODUS_STAGE", min_length=1)
    table: str = Field(alias="NODUS_TABLE", min_length=1)
    payloads: str = Field(alias="NODUS_PAYLOADS", min_length=1)
    link_api_id: str = Field(alias="NODUS_LINK_API_ID", min_length=1)
    link_stage: str = Field(alias="NODUS_LINK_STAGE", min_length=1)
    http_api_id: str = Field(alias="NODUS_HTTP_API_ID", min_length=1)
    cluster: str = Field(alias="NODUS_CLUSTER", min_length=1)
    task_definition: str = Field(alias="NODUS_TASK_DEFINITION", min_length=1)
    subnets: str = Field(alias="NODUS_SUBNETS", min_length=1)
    security_group: str = Field(alias="NODUS_SECURITY_GROUP", min_length=1)
    capacity_provider: str = Field(alias="NODUS_CAPACITY_PROVIDER", min_length=1)
    sandbox_container: str = Field(alias="NODUS_SANDBOX_CONTAINER", min_length=1)
    warm_sandboxes: int = Field(alias="NODUS_WARM_SANDBOXES", ge=0)
    runtime_image: str = Field(alias="NODUS_RUNTIME_IMAGE")
    gpu_provider: str = Field(alias="NODUS_GPU_PROVIDER")
    gpu_subnets: str = Field(alias="NODUS_GPU_SUBNETS")
    providers_secret: str = Field(alias="NODUS_PROVIDERS_SECRET", min_length=1)
    secrets: str = Field(alias="NODUS_SECRETS", min_length=1)
    github_app: str = Field(alias="NODUS_GITHUB_APP")
    git_hosts: str = Field(alias="NODUS_GIT_HOSTS")
    git_folder: str = Field(alias="NODUS_GIT_FOLDER")
    archive_hosts: str = Field(alias="NODUS_ARCHIVE_HOSTS")
