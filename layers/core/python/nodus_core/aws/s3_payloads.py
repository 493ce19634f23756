"""Payloads in one S3 bucket, under `<org>/<owner>/<sha256>`."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, BinaryIO, TypeVar

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.aws.s3_transfers import PREFIX
from nodus_core.journal.payloads import PRESIGNED_S, Scope
from nodus_core.kernel.errors import CorruptRow, StoreUnavailable
from nodus_core.kernel.text import INLINE_LIMIT, Inline, Stored, Text, cut, is_bare

CONTENT_TYPE = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
_PART = 1 << 20
FETCHERS = 8
"""Payloads fetched at the same time."""

T = TypeVar("T")


class S3Payloads:
    """`Payloads`; safe to share between threads. `client` is botocore's for S3."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        content = text.encode()
        if len(content) <= INLINE_LIMIT:
            return Inline(text)
        beginning = cut(text, INLINE_LIMIT) if head else ""
        stored = Stored(hashlib.sha256(content).hexdigest(), len(content), beginning)
        key = _key(scope, stored)
        with translated(f"writing payload {key}", StoreUnavailable):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=content, ContentType=CONTENT_TYPE)
        return stored

    def put_file(self, scope: Scope, file: BinaryIO) -> Stored:
        file.seek(0)
        sha256 = hashlib.sha256()
        while part := file.read(_PART):
            sha256.update(part)
        stored = Stored(sha256.hexdigest(), file.tell(), "")
        file.seek(0)
        key = _key(scope, stored)
        with translated(f"writing payload {key}", StoreUnavailable):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=file, ContentType=BYTES)
        return stored

    def get(self, scope: Scope, text: Text) -> str:
        if isinstance(text, Inline):
            return text.text
        key = _key(scope, text)
        content = self._content(key)
        if hashlib.sha256(content).hexdigest() != text.sha256:
            raise CorruptRow(
                f"payload {key} holds {len(content)} bytes that are not the {text.size} its hash stands for:"
                " restore the object from a backup, or remove its run"
            )
        return content.decode()

    def get_many(self, scope: Scope, texts: Sequence[Text]) -> list[str]:
        fetched = _side_by_side(
            lambda text: self.get(scope, text), [text for text in texts if isinstance(text, Stored)]
        )
        return [text.text if isinstance(text, Inline) else fetched[text] for text in texts]

    def with_heads(self, scope: Scope, texts: Sequence[Text]) -> list[Text]:
        fetched = _side_by_side(
            lambda text: self._content(_key(scope, text), first=INLINE_LIMIT),
            [text for text in texts if is_bare(text)],
        )
        return [
            replace(text, head=fetched[text].decode(errors="ignore")) if is_bare(text) else text
            for text in texts
        ]

    def presign(self, scope: Scope, stored: Stored) -> str:
        key = _key(scope, stored)
        with translated(f"presigning payload {key}", StoreUnavailable):
            return self._client.generate_presigned_url(
                "get_object",
                Params={"Bucket": self._bucket, "Key": key, "ResponseContentType": CONTENT_TYPE},
                ExpiresIn=PRESIGNED_S,
            )

    def delete_scope(self, scope: Scope) -> None:
        for prefix in (f"{scope.org}/{scope.id}/", f"{PREFIX}{scope.org}/{scope.id}/"):
            self._delete_below(prefix)

    def _delete_below(self, prefix: str) -> None:
        with translated(f"deleting payloads below {prefix}", StoreUnavailable):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
            for page in pages:
                self._delete([entry["Key"] for entry in page.get("Contents", [])])

    def _content(self, key: str, first: int | None = None) -> bytes:
        part = {} if first is None else {"Range": f"bytes=0-{first - 1}"}
        with translated(f"reading payload {key}", StoreUnavailable):
            try:
                return self._client.get_object(Bucket=self._bucket, Key=key, **part)["Body"].read()
            except ClientError as error:
                if code_of(error) != "NoSuchKey":
                    raise
                raise CorruptRow(f"payload {key} is gone, though a row still names it") from error

    def _delete(self, keys: list[str]) -> None:
        if not keys:
            return
        answer = self._client.delete_objects(
            Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in keys], "Quiet": True}
        )
        if failed := answer.get("Errors"):
            first = failed[0]
            raise StoreUnavailable(
                f"{len(failed)} of {len(keys)} payloads were not deleted,"
                f" the first {first.get('Key')}: {first.get('Code')}"
            )


def _side_by_side(fetch: Callable[[Stored], T], texts: Sequence[Stored]) -> dict[Stored, T]:
    """What is fetched for each of the texts; no thread is started for a single one."""
    once = list(dict.fromkeys(texts))
    if len(once) <= 1:
        return {text: fetch(text) for text in once}
    with ThreadPoolExecutor(min(FETCHERS, len(once)), "payload") as pool:
        return dict(zip(once, pool.map(fetch, once), strict=True))


def _key(scope: Scope, stored: Stored) -> str:
    return f"{scope.org}/{scope.id}/{stored.sha256}"
