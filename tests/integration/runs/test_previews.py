"""Previews in the deployed cloud: a page of a sandbox is seen at its address, by whoever has it, for a while."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import nodus
import pytest
from nodus import errors

from localstack.testing import TestCloud
from tests.integration.runs.person import Person, in_turn
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(400)

LARGE = os.urandom(3 * 1024 * 1024)
ECHO = """
import http.server

class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(302 if self.path == "/moved" else 201)
        self.send_header("Location", "http://127.0.0.1:8001/there")
        self.send_header("Set-Cookie", "console=stolen")
        self.send_header("X-Heard", repr(sorted(name.lower() for name in self.headers)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST

http.server.ThreadingHTTPServer(("0.0.0.0", 8001), Echo).serve_forever()
"""
LISTENS = "until (exec 3<>/dev/tcp/127.0.0.1/{0}) 2>/dev/null; do sleep 0.1; done"


@pytest.fixture(scope="module")
def client(local_cloud: TestCloud) -> Iterator[nodus.Client]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NODUS_CONFIG", str(local_cloud.configuration))
        settled = nodus.Client().settings
    with nodus.Client(server=settled.server, token=settled.token, project=settled.project) as made:
        yield made


@pytest.fixture(scope="module")
def box(client: nodus.Client) -> Iterator[nodus.Sandbox]:
    """A running Sandbox with two web services: files at 8000, an echo at 8001."""
    made = nodus.Sandbox.create(f"preview-{uuid.uuid4().hex[:8]}", client=client)
    made.start()
    made.write_file("site/index.html", "<h1>hello</h1>\n", parents=True)
    made.write_file("site/large.bin", LARGE)
    made.write_file("echo.py", ECHO)
    serve = "nohup python3 -m http.server 8000 --bind 127.0.0.1 --directory site > log 2>&1 &"
    begun = made.run(
        f"{serve} nohup python3 echo.py > echo.log 2>&1 & {LISTENS.format(8000)}; {LISTENS.format(8001)}"
    )
    assert begun.exit_code == 0, begun
    yield made
    made.delete()


@pytest.fixture
def visitor() -> Iterator[httpx2.Client]:
    """Somebody without a key."""
    with httpx2.Client(timeout=40) as made:
        yield made


@pytest.mark.req("NOD-417", "NODQ-69")
def test_the_page_of_a_port_is_seen_by_who_has_the_address(
    box: nodus.Sandbox, local_cloud: TestCloud, visitor: httpx2.Client
) -> None:
    command = [sys.executable, "-m", "nodus.cli", "sandbox", "preview", box.name, "8000"]
    printed = subprocess.run(
        command, env=local_cloud.environment(), capture_output=True, text=True, check=True
    )
    address = printed.stdout.strip()
    page = visitor.get(address)
    assert (page.status_code, page.text) == (200, "<h1>hello</h1>\n")
    assert page.headers["content-type"] == "text/html"
    assert page.headers["content-security-policy"].startswith("sandbox ")
    assert "allow-same-origin" not in page.headers["content-security-policy"]
    large = visitor.get(f"{address}large.bin")
    assert (large.status_code, large.content == LARGE) == (200, True)
    again = visitor.get(f"{address}large.bin", headers={"If-Modified-Since": large.headers["last-modified"]})
    assert (again.status_code, again.content) == (304, b"")
    missing = visitor.get(f"{address}none.html")
    assert (missing.status_code, "Nothing matches the given URI" in missing.text) == (404, True)
    head = visitor.head(address)
    assert (head.status_code, head.content) == (200, b"")
    moved = visitor.get(address.rstrip("/"))
    assert (moved.status_code, moved.next_request and str(moved.next_request.url)) == (308, address)


@pytest.mark.req("NOD-417")
def test_bodies_pass_and_nothing_of_ours_goes_in_or_of_the_origin_comes_out(
    box: nodus.Sandbox, visitor: httpx2.Client
) -> None:
    address = box.preview(8001).url
    sent = {"Authorization": "Bearer x", "Cookie": "a=b", "X-Own": "1", "Content-Type": "application/x-own"}
    for body in (b"\0\xff bytes", LARGE):
        echoed = visitor.post(f"{address}any?q=1", content=body, headers=sent)
        assert (echoed.status_code, echoed.content == body) == (201, True)
        assert "set-cookie" not in echoed.headers
        heard = echoed.headers["x-heard"]
        assert "'x-own'" in heard
        assert "'x-forwarded-prefix'" in heard
        assert "'authorization'" not in heard
        assert "'cookie'" not in heard
    moved = visitor.put(f"{address}moved", content=b"")
    assert moved.next_request is not None
    assert str(moved.next_request.url) == f"{address}there"


@pytest.mark.req("NOD-417", "NODQ-69")
def test_nobody_else_sees_it_and_it_ends(
    box: nodus.Sandbox, client: nodus.Client, visitor: httpx2.Client
) -> None:
    short = box.preview(8000, ttl="1s").url
    until(lambda: visitor.get(short).status_code, lambda code: code == 404)
    address = box.preview(8000).url
    token = address.rstrip("/").rpartition("/")[2]
    other = "A" if token[-1] != "A" else "B"
    wrong = visitor.get(address.replace(token, token[:-1] + other))
    assert (wrong.status_code, wrong.json()["reason"]) == (404, "NotFound")
    elsewhere = f"elsewhere-{uuid.uuid4().hex[:8]}"
    client.projects.create(elsewhere, {})
    with pytest.raises(errors.NotFoundError):
        nodus.Sandbox.from_name(box.name, client=client, project=elsewhere).preview(8000)
    key = client.apikeys.create(elsewhere, {"role": "editor", "projects": [elsewhere]})
    token = key.status.token
    with (
        nodus.Client(server=client.settings.server, token=token, project=client.settings.project) as stranger,
        pytest.raises(errors.ForbiddenError),
    ):
        stranger.sandboxes.preview(box.name, 8000)
    client.apikeys.delete(elsewhere)
    client.projects.delete(elsewhere)


@pytest.mark.req("NOD-417")
def test_what_gives_no_page_says_why(box: nodus.Sandbox, visitor: httpx2.Client) -> None:
    nothing = visitor.get(box.preview(8099).url)
    assert (nothing.status_code, nothing.json()["reason"]) == (502, "BadGateway")
    assert f"port 8099 of Sandbox '{box.name}'" in nothing.json()["message"]
    address = box.preview(8001).url
    websocket = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"}
    refused = visitor.get(address, headers=websocket)
    assert refused.status_code in (400, 426)
    large = visitor.post(address, content=bytes(4 * 1024 * 1024 + 1))
    assert large.status_code == 413


@pytest.mark.req("NOD-410", "NOD-438")
def test_a_stopped_machine_shows_nothing_and_is_not_started(
    client: nodus.Client, visitor: httpx2.Client
) -> None:
    other = nodus.Sandbox.create(f"stopped-{uuid.uuid4().hex[:8]}", client=client)
    other.start()
    address = other.preview(8000).url
    other.stop()
    stopped = visitor.get(address)
    assert (stopped.status_code, stopped.json()["reason"]) == (409, "SandboxNotRunning")
    with pytest.raises(errors.SandboxNotRunningError):
        other.preview(8000)
    assert other.status.phase == "Paused"
    other.delete()
    assert visitor.get(address).status_code == 404


@pytest.mark.req("NOD-417", "NOD-397")
def test_what_an_agent_has_started_is_seen_until_its_run_ends(person: Person, visitor: httpx2.Client) -> None:
    person.agent("server")
    serves = f"echo from the agent > index.html; nohup python3 -m http.server 8000 > log 2>&1 & {LISTENS.format(8000)}"
    run = person.start("server", in_turn(serves), keepAlive=True)
    name = run.waits("MessageWait")["sandbox"]["name"]
    made = person.call("POST", f"sandboxes/{name}/previews", {"port": 8000})
    assert made.status_code == 201, made.text
    address = made.json()["url"]
    assert visitor.get(address).text == "from the agent\n"
    run.cancel()
    run.cleared()
    gone = visitor.get(address)
    assert (gone.status_code, gone.json()["reason"]) == (409, "SandboxNotRunning")


@pytest.mark.req("NOD-417")
def test_many_requests_of_a_page_at_once_come_back_or_are_told_to_come_again(
    box: nodus.Sandbox, visitor: httpx2.Client
) -> None:
    address = box.preview(8000).url
    with ThreadPoolExecutor(24) as pool:
        pages = list(pool.map(lambda number: visitor.get(f"{address}?n={number}"), range(24)))
    codes = [page.status_code for page in pages]
    assert codes.count(200) >= 8, codes
    late = [page for page in pages if page.status_code != 200]
    assert all((page.status_code, page.headers["retry-after"]) == (429, "1") for page in late), codes
