"""Idempotency keys: the same key and the same meaning give the first outcome again (FLD-16).

A key counts within its project, method and path, and lives for a day. The receipt is written in the commit of
the object that it promises, so there is no moment at which one exists without the other, and no "in progress".
Only a success is remembered: after a refusal the same key may carry a corrected body.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from nodus_core.journal.journal import Journal
from nodus_core.journal.receipts import binds
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Object, ObjectKey, Receipt
from nodus_core.kernel.text import Inline
from nodus_core.kernel.times import moment, stamp
from nodus_core.resources.manifest import Manifest

LONGEST_KEY = 255


@dataclass(frozen=True)
class Promise:
    """What a call with an idempotency key asks for: the key as it is stored, and the request's digest.

    `word` is what the caller knows the key as.
    """

    key: str
    digest: str
    word: str = "Idempotency-Key"


def promise(scope: ObjectKey, method: str, path: str, key: str, *manifests: Manifest) -> Promise:
    """The promise of one create, or of one of several objects together.

    Args:
        scope: its organization and project count.
        key: the `Idempotency-Key` header, 1 to 255 visible ASCII characters.

    Raises `Refusal` `BadRequest` for a key that is none.
    """
    if not 0 < len(key) <= LONGEST_KEY or not all("!" <= char <= "~" for char in key):
        message = f"Idempotency-Key must be 1 to {LONGEST_KEY} visible ASCII characters"
        raise Refusal("BadRequest", message)
    stored_key = digest(json.dumps([scope.org, scope.project, method, path, key]))
    prints = [manifest.fingerprint(salt=stored_key) for manifest in manifests]
    return Promise(stored_key, prints[0] if len(prints) == 1 else digest(json.dumps(prints)))


def receipt_of(promised: Promise, obj: Object, now: datetime) -> Receipt:
    """The receipt that goes into the object's commit."""
    return Receipt(promised.key, promised.digest, json.dumps(_facts(obj)), now, obj.status)


def receipt_of_all(promised: Promise, objects: Sequence[Object], now: datetime) -> Receipt:
    """The receipt that goes into the commit of objects that are created together: new ones, whose status is short."""
    facts = json.dumps([{**_facts(obj), "status": obj.status} for obj in objects], default=str)
    return Receipt(promised.key, promised.digest, facts, now)


def _facts(obj: Object) -> dict[str, Any]:
    return {
        "name": obj.key.name,
        "uid": obj.uid,
        "version": obj.version,
        "createdAt": stamp(obj.created_at),
    }


def kept(journal: Journal, promised: Promise, now: datetime) -> Receipt | None:
    """The receipt of an earlier call that meant the same.

    Raises `Refusal` `IdempotencyKeyConflict` when the key stands for another request.
    """
    receipt = journal.receipt(promised.key)
    if receipt is None or not binds(receipt, now):
        return None
    if receipt.digest != promised.digest:
        message = f"this {promised.word} was used for another request; take a new key for a new request"
        raise Refusal("IdempotencyKeyConflict", message)
    return receipt


def first_outcome(receipt: Receipt, key: ObjectKey, manifest: Manifest) -> Object:
    """The object as the first call answered it, whatever became of it since."""
    # Receipts of earlier releases have the status among the facts.
    return outcome_of({"status": receipt.status, **json.loads(receipt.facts)}, key, manifest)


def outcome_of(facts: Mapping[str, Any], key: ObjectKey, manifest: Manifest) -> Object:
    """The object of which a receipt has kept these facts."""
    said = manifest.metadata
    return Object(
        key=replace(key, name=facts["name"]),
        uid=facts["uid"],
        version=facts["version"],
        generation=1,
        spec=Inline(""),
        created_at=moment(facts["createdAt"]),
        status=facts["status"],
        labels=said.labels or {},
        annotations=Inline(json.dumps(said.annotations)) if said.annotations else None,
    )
