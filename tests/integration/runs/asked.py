"""What models were asked: the record of the scripted model server, which stands outside of all that is tested."""

from __future__ import annotations

import json
from typing import Any

import httpx2

from localstack import daemons
from localstack.testing import TestCloud


def requests(cloud: TestCloud, mark: str) -> list[dict[str, Any]]:
    """Requests whose prompt bears the mark, oldest first: `at` (seconds), `body` (the text as sent), `played`."""
    key = daemons.scripted_key_file(cloud.state).read_text().strip()
    address = f"http://127.0.0.1:{daemons.scripted_port(cloud.state)}/_requests?limit=100000"
    answer = httpx2.get(address, headers={"Authorization": f"Bearer {key}"}, timeout=60)
    assert answer.status_code == 200, answer.text
    return [entry for entry in answer.json()["requests"] if f"[{mark}]" in entry.get("body", "")]


def bodies(cloud: TestCloud, mark: str) -> list[dict[str, Any]]:
    """The same requests' bodies, parsed; routing calls left out."""
    parsed = [json.loads(entry["body"]) for entry in requests(cloud, mark)]
    return [body for body in parsed if body.get("tools")]
