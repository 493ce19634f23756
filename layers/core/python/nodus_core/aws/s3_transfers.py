"""Contents on their way, in the bucket of the payloads, under `_transfers/<org>/<owner>/<name>`.

No organization's name begins with `_`, so these keys are no payload's, and the bucket's rule for them removes nothing
else. They go with their owner as well (`S3Payloads.delete_scope`).
"""

from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.journal.payloads import Scope
from nodus_core.journal.transfers import ADDRESS_S
from nodus_core.kernel.errors import StoreUnavailable

PREFIX = "_transfers/"
_MISSING = ("404", "NoSuchKey", "NotFound")


class S3Transfers:
    """`Transfers`. `client` is botocore's for S3."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def address_to_put(self, scope: Scope, name: str, size: int) -> str:
        return self._address("put_object", scope, name, ContentLength=size)

    def address_to_get(self, scope: Scope, name: str) -> str:
        return self._address("get_object", scope, name, ResponseContentType="application/octet-stream")

    def put(self, scope: Scope, name: str, content: bytes) -> None:
        with translated("writing a transfer", StoreUnavailable):
            self._client.put_object(Body=content, **self._place(scope, name))

    def get(self, scope: Scope, name: str, most: int) -> bytes | None:
        with translated("reading a transfer", StoreUnavailable):
            try:
                found = self._client.get_object(**self._place(scope, name))
            except ClientError as error:
                if code_of(error) not in _MISSING:
                    raise
                return None
            with found["Body"] as body:
                return bytes(body.read(most))

    def size(self, scope: Scope, name: str) -> int | None:
        with translated("looking for a transfer", StoreUnavailable):
            try:
                return int(self._client.head_object(**self._place(scope, name))["ContentLength"])
            except ClientError as error:
                if code_of(error) not in _MISSING:
                    raise
                return None

    def remove(self, scope: Scope, name: str) -> None:
        with translated("removing a transfer", StoreUnavailable):
            self._client.delete_object(**self._place(scope, name))

    def _address(self, call: str, scope: Scope, name: str, **more: Any) -> str:
        with translated("presigning a transfer", StoreUnavailable):
            return self._client.generate_presigned_url(
                call, Params={**self._place(scope, name), **more}, ExpiresIn=ADDRESS_S
            )

    def _place(self, scope: Scope, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{PREFIX}{scope.org}/{scope.id}/{name}"}
