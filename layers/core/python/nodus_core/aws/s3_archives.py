"""Archives in the bucket of payloads, under `<org>/<owner>/saves/<name>`: whoever deletes the owner's deletes them."""

from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.journal.payloads import Scope
from nodus_core.kernel.errors import StoreUnavailable

_MISSING = ("404", "NoSuchKey", "NotFound")


class S3Archives:
    """`Archives`; safe to share between threads. `client` is botocore's for S3."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        return self._url("put_object", scope, name, valid)

    def get_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        return self._url("get_object", scope, name, valid)

    def size(self, scope: Scope, name: str) -> int | None:
        key = _key(scope, name)
        with translated(f"looking at archive {key}", StoreUnavailable):
            try:
                return int(self._client.head_object(Bucket=self._bucket, Key=key)["ContentLength"])
            except ClientError as error:
                if code_of(error) not in _MISSING:
                    raise
                return None

    def delete(self, scope: Scope, name: str) -> None:
        key = _key(scope, name)
        with translated(f"deleting archive {key}", StoreUnavailable):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def _url(self, method: str, scope: Scope, name: str, valid: timedelta) -> str:
        key = _key(scope, name)
        with translated(f"presigning archive {key}", StoreUnavailable):
            return self._client.generate_presigned_url(
                method,
                Params={"Bucket": self._bucket, "Key": key},
                ExpiresIn=int(valid.total_seconds()),
            )


def _key(scope: Scope, name: str) -> str:
    return f"{scope.org}/{scope.id}/saves/{name}"
