"""The account's own registry of images (ECR)."""

from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.kernel.errors import TerminalError

_UNKNOWN = frozenset({"ImageNotFoundException", "RepositoryNotFoundException"})


class EcrRegistry:
    """`ImageRegistry` of the account. `client` is botocore's for ECR."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def digest(self, repository: str, version: str, host: str) -> str:
        by = "imageDigest" if version.startswith("sha256:") else "imageTag"
        with translated(f"asking for image {repository}:{version}"):
            try:
                answer = self._client.describe_images(repositoryName=repository, imageIds=[{by: version}])
            except ClientError as error:
                if code_of(error) not in _UNKNOWN:
                    raise
                message = f"registry {host} has no image {repository}:{version}"
                raise TerminalError(
                    f"{message}; the operator has to build it (docs/operations.md)"
                ) from error
        return str(answer["imageDetails"][0]["imageDigest"])
