"""Previews from the wire: who gets an address, what it opens, and what passes between its visitor and the service."""

import base64
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from nodus_core.access.grant import Rate
from nodus_core.journal.keys import sandbox_key
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.kernel.times import stamp
from nodus_core.resources.kinds import BY_NAME
from nodus_core.sandboxes.preview_headers import METHODS

from functions.api.handler import log
from functions.api.routes.sandbox_previews import shown_path
from tests.unit.api.rest import UNHURRIED, Reply, Rest, api_event, manifest

PREVIEWS = "sandboxes/mine/previews"
LARGE = bytes(range(256)) * 4 * 1024 * 4  # 4 MiB, the most that passes
SANDBOXED = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts"


class Served:
    """A Sandbox whose services answer with what `answers` says, and a visitor of theirs."""

    def __init__(self, rate: Rate = UNHURRIED) -> None:
        self.rest = Rest(rate=rate)
        self.rest.post("sandboxes", manifest("Sandbox", "mine", {}))
        self.rest.world.pass_time(1)
        self.rest.world.sandboxes.answers = self.answer
        self.heard: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.held: dict[str, bytes] = {}
        self.status, self.headers, self.body = 200, [["Content-Type", "text/html"]], b"<h1>hello</h1>"
        self.fails: dict[str, Any] | None = None

    def answer(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """As the daemon's desk does it (tests/unit/sandboxd)."""
        if kind == "http_body":
            self.contents[request["url"]] = self.held.pop(request["held"])
            return {"state": "exited", "size": len(self.contents[request["url"]])}
        assert kind == "http"
        self.heard.append(request)
        given = request.get("content", "")
        self.bodies.append(self.contents[request["url"]] if "url" in request else base64.b64decode(given))
        if self.fails is not None:
            return {"message": "the daemon's word", **self.fails}
        told = {"state": "exited", "status": self.status, "headers": self.headers, "size": len(self.body)}
        if len(self.body) <= 128 * 1024:
            return {**told, "content": base64.b64encode(self.body).decode()}
        self.held["0" * 32] = self.body
        return {**told, "held": "0" * 32}

    @property
    def contents(self) -> dict[str, bytes]:
        return self.rest.world.transfers.contents

    def make(self, port: int = 8000, path: str = PREVIEWS, /, **more: Any) -> Reply:
        key = {"key": more.pop("key")} if "key" in more else {}
        return self.rest.post(path, {"port": port, **more}, **key)

    def address(self, port: int = 8000, **more: Any) -> str:
        """Where the API is asked for it."""
        made = self.make(port, **more)
        assert made.code == 201, made.text
        url = made.json["url"]
        assert url.startswith("https://api.test/base/preview/")
        return urlsplit(url).path.removeprefix("/base")

    def visit(self, path: str, method: str = "GET", body: bytes | None = None, **more: Any) -> Reply:
        """Without a key: whoever has the address."""
        return self.rest.call(method, path, body, kind="application/octet-stream", key="", **more)

    def heard_headers(self) -> dict[str, str]:
        texts = self.heard[-1]["headers"]
        return dict(zip(texts[::2], texts[1::2], strict=True))


@pytest.fixture
def served() -> Served:
    return Served()


# --- who gets in ---


@pytest.mark.req("NOD-417", "NODQ-69")
def test_an_address_shows_the_page_of_its_port_until_its_time_is_over(served: Served) -> None:
    made = served.make(8000, ttl="10m")
    assert made.code == 201
    shown = made.json
    assert (shown["kind"], shown["sandbox"], shown["port"]) == ("SandboxPreview", "mine", 8000)
    assert shown["expiresAt"] == stamp(served.rest.world.clock.now() + timedelta(minutes=10))
    path = urlsplit(shown["url"]).path.removeprefix("/base")
    page = served.visit(f"{path}a/b.html", query={"q": "1 2"})
    assert (page.code, page.raw) == (200, b"<h1>hello</h1>")
    asked = served.heard[-1]
    assert (asked["port"], asked["method"], asked["target"]) == (8000, "GET", "/a/b.html?q=1+2")
    served.rest.world.clock.advance(599)
    assert served.visit(path).code == 200
    served.rest.world.clock.advance(2)
    over = served.visit(path)
    assert (over.code, over.json["reason"]) == (404, "NotFound")
    assert len(served.heard) == 2


@pytest.mark.req("NOD-417")
def test_what_is_no_token_opens_nothing_and_asks_nobody(served: Served) -> None:
    path = served.address()
    token = path.split("/")[2]
    assert len(token) == 43
    other = "A" if token[-1] != "A" else "B"
    for wrong in ("x", token[:-1], token[:-1] + other, token + "A", token.upper() + "x", "..", "%2e%2e", '"'):
        refused = served.visit(f"/preview/{wrong}/")
        assert (refused.code, refused.json["reason"]) == (404, "NotFound"), wrong
    assert served.heard == []
    assert token not in str(served.rest.store.rows()), "only its hash is kept"


def test_an_address_without_its_slash_leads_to_the_one_with_it(served: Served) -> None:
    path = served.address()
    moved = served.visit(path.rstrip("/"), query={"a": "b"})
    assert (moved.code, moved.headers["location"]) == (308, f"{path.split('/')[2]}/?a=b")
    assert served.visit("/preview/").code == 404
    assert served.visit("/preview").code == 404


@pytest.mark.req("NOD-417", "NOD-467")
def test_only_who_may_change_the_sandbox_gets_an_address(served: Served) -> None:
    reads = served.rest.new_key(permissions=("sandboxes:read",))
    of_lab = served.rest.new_key(projects=("lab",))
    assert served.make(key=reads).code == 403
    assert served.make(key=of_lab).code == 403
    assert served.rest.post(PREVIEWS, {"port": 1}, project="lab").code == 404
    assert served.make(8000, "sandboxes/none/previews").code == 404


@pytest.mark.req("NODQ-69")
def test_an_address_ends_with_the_key_that_made_it(served: Served) -> None:
    spec = {"permissions": ["sandboxes:write"], "projects": ["web"], "ttl": "30m"}
    made = served.rest.call("POST", "/apis/nodus.dev/v1/apikeys", manifest("ApiKey", "guest", spec))
    token = made.json["status"]["token"]
    shown = served.make(key=token, ttl="2h")
    assert shown.json["expiresAt"] == made.json["spec"]["expiresAt"]
    path = urlsplit(shown.json["url"]).path.removeprefix("/base")
    assert served.visit(path).code == 200
    served.rest.call("DELETE", "/apis/nodus.dev/v1/apikeys/guest")
    served.rest.world.clock.advance(31)  # what a process has read of a key counts for 30 s
    assert served.visit(path).code == 404


@pytest.mark.req("NODQ-69")
def test_a_preview_of_a_sandbox_never_shows_another_of_its_name(served: Served) -> None:
    path = served.address()
    served.rest.call("DELETE", "sandboxes/mine")
    served.rest.world.settle()
    gone, wrong = served.visit(path), served.visit(f"/preview/{'x' * 43}/")
    assert (gone.code, gone.json["message"]) == (404, wrong.json["message"])  # a visitor learns no names
    served.rest.post("sandboxes", manifest("Sandbox", "mine", {}))
    served.rest.world.pass_time(1)
    assert served.make().code == 201
    assert served.visit(path).code == 404


@pytest.mark.req("NOD-410", "NOD-438")
def test_a_machine_that_stands_still_is_not_started_and_comes_back_under_its_address(served: Served) -> None:
    path = served.address()
    served.rest.post("sandboxes/mine/stop")
    served.rest.world.settle()
    for refused in (served.make(), served.visit(path)):
        assert (refused.code, refused.json["reason"]) == (409, "SandboxNotRunning")
    assert served.rest.get("sandboxes/mine").json["status"]["phase"] == "Paused"
    served.rest.post("sandboxes/mine/start")
    served.rest.world.pass_time(1)
    assert served.visit(path).code == 200


def test_a_runs_sandbox_is_shown_to_who_may_write_runs(served: Served) -> None:
    rest = served.rest
    rest.agent()
    rest.run("kept", keepAlive=True)
    rest.world.pass_time(1)
    name = rest.get("agentruns/kept").json["status"]["sandbox"]["name"]
    path = urlsplit(served.make(8000, f"sandboxes/{name}/previews").json["url"]).path.removeprefix("/base")
    assert served.visit(path).code == 200
    narrow = rest.new_key(permissions=("sandboxes:write",))
    refused = served.make(8000, f"sandboxes/{name}/previews", key=narrow)
    assert (refused.code, "agentruns:write" in refused.json["message"]) == (403, True)


@pytest.mark.parametrize(
    "body",
    [{}, {"port": 0}, {"port": 65_536}, {"port": "80"}, {"port": 80, "ttl": "25h"}, {"port": 80, "x": 1}],
)
def test_a_preview_that_makes_no_sense_is_refused_by_field(served: Served, body: dict[str, Any]) -> None:
    refused = served.rest.post(PREVIEWS, body)
    assert (refused.code, len(refused.fields)) == (422, 1)


@pytest.mark.req("NOD-399")
def test_visits_are_no_work(served: Served) -> None:
    path = served.address()
    uid = served.rest.get("sandboxes/mine").json["metadata"]["uid"]
    key = sandbox_key(f"{uid}-s1")
    before = served.rest.store.rows()[key].get("worked_at")
    served.rest.world.clock.advance(60)
    assert served.visit(path).code == 200
    assert served.rest.store.rows()[key].get("worked_at") == before


@pytest.mark.parametrize(("rate", "most"), [(Rate(1, 5), 10), (UNHURRIED, 600)])
def test_too_many_visits_are_refused_and_cost_the_key_nothing(rate: Rate, most: int) -> None:
    """Also where the key may do more: whoever has the address has no key."""
    served = Served(rate)
    path = served.address()
    refused = [served.visit(path) for _ in range(most)][-1]
    assert (refused.code, refused.json["reason"]) == (429, "TooManyRequests")
    assert served.rest.get("sandboxes/mine").code == 200


# --- what passes ---


@pytest.mark.req("NOD-417")
def test_nothing_of_ours_goes_into_the_sandbox(served: Served) -> None:
    sent = {
        "authorization": f"Bearer {served.rest.key}",
        "cookie": "console=secret",
        "nodus-org": "acme",
        "origin": "null",
        "referer": "https://api.test/base/preview/x/",
        "connection": "keep-alive, X-Hop",
        "x-hop": "1",
        "te": "trailers",
        "proxy-authorization": "Basic x",
        "sec-fetch-site": "cross-site",
        "x-forwarded-for": "192.0.2.1",
        "x-amzn-trace-id": "Root=1",
        "accept": "text/html",
        "accept-language": "de",
        "range": "bytes=0-3",
        "x-own": "passes",
        "x-bad": "a\r\nb: c",
        "x-strange": "日本",
    }
    assert served.visit(served.address() + "p", headers=sent).code == 200
    prefix = urlsplit(served.make().json["url"]).path[:14]
    heard = served.heard_headers()
    assert heard.pop("x-forwarded-prefix").startswith(prefix)
    assert heard == {
        "host": "127.0.0.1:8000",
        "accept": "text/html",
        "accept-language": "de",
        "range": "bytes=0-3",
        "x-own": "passes",
        "connection": "close",
        "x-forwarded-host": "api.test",
        "x-forwarded-proto": "https",
    }


@pytest.mark.req("NOD-417")
def test_a_hostile_page_has_no_word_on_the_origin_that_it_seems_to_have(served: Served) -> None:
    served.headers = [
        ["Content-Type", "text/html"],
        ["content-type", "text/plain"],
        ["Set-Cookie", "console=stolen; Path=/"],
        ["Content-Security-Policy", "default-src *"],
        ["X-Content-Type-Options", "none"],
        ["Referrer-Policy", "unsafe-url"],
        ["Clear-Site-Data", '"*"'],
        ["Strict-Transport-Security", "max-age=1"],
        ["Service-Worker-Allowed", "/"],
        ["Alt-Svc", 'h3="evil:443"'],
        ["NEL", "{}"],
        ["Report-To", "{}"],
        ["WWW-Authenticate", "Basic"],
        ["Access-Control-Allow-Origin", "https://evil.test"],
        ["Access-Control-Allow-Credentials", "true"],
        ["X-Frame-Options", "DENY"],
        ["X-Request-Id", "theirs"],
        ["X-Amz-Meta", "1"],
        ["X-Accel-Redirect", "/private/"],
        ["X-Sendfile", "/etc/passwd"],
        ["X-LiteSpeed-Location", "/etc/passwd"],
        ["X-Reproxy-URL", "http://169.254.169.254/"],
        ["Transfer-Encoding", "chunked"],
        ["Connection", "keep-alive"],
        ["Content-Length", "5"],
        ["Cache-Control", "public, max-age=3600"],
        ["X-Bad", "a\r\nSet-Cookie: b=c"],
        ["X Bad", "1"],
        ["X-Own", "1"],
        ["X-OWN", "2"],
        ["ETag", '"v"'],
        ["Content-Encoding", "gzip"],
    ]
    page = served.visit(served.address())
    assert dict(page.headers) == {
        "content-type": "text/html",
        "content-encoding": "gzip",
        "etag": '"v"',
        "x-own": "1, 2",
        "content-security-policy": SANDBOXED,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "*",
        "cache-control": "private, no-cache",
        "x-request-id": page.headers["x-request-id"],
    }
    assert page.headers["x-request-id"] != "theirs"
    served.headers = [["Cache-Control", "no-store"]]
    untyped = served.visit(served.address()).headers
    assert (untyped["cache-control"], untyped["content-type"]) == ("no-store", "application/octet-stream")
    served.headers = [[f"X-Long-{n}", "x" * 1000] for n in range(9)]
    long = served.visit(served.address())
    assert (long.code, long.json["reason"]) == (502, "BadGateway")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/login?a=b#c", "{}/login?a=b#c"),
        ("http://127.0.0.1:8000/x", "{}/x"),
        ("http://localhost:8000", "{}/"),
        ("//[::1]:8000/x", "{}/x"),
        ("https://api.test/x", "{}/x"),
        ("{}/already", "{}/already"),
        ("https://api.test{}/already", "{}/already"),
        ("next", "next"),
        ("?q=1", "?q=1"),
        ("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x"),
        ("https://example.org/ü", "https://example.org/%C3%BC"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("http://[", None),
        ("/a b", "{}/a%20b"),
    ],
)
def test_redirects_lead_back_below_the_address(served: Served, said: str, shown: str | None) -> None:
    path = served.address()
    prefix = "/base" + path.rstrip("/")
    served.status, served.headers = 302, [["Location", said.format(prefix)]]
    moved = served.visit(f"{path}from/here")
    assert moved.code == 302
    assert moved.headers.get("location") == (None if shown is None else shown.format(prefix))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_and_status_passes(served: Served, method: str) -> None:
    served.status, served.body = 404, b"" if method == "HEAD" else b"theirs"
    got = served.visit(served.address(), method)
    assert (got.code, got.raw) == (404, served.body)
    assert served.heard[-1]["method"] == method
    given = served.heard_headers().get("content-length")
    assert given == ("0" if method in ("POST", "PUT", "PATCH") else None)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("a b/ü", "/a%20b/%C3%BC"),
        ("a%25b", "/a%25b"),
        ("a?b#c", "/a%3Fb%23c"),
        ("a\tb\x7f", "/a%09b%7F"),
        ('"<>\\^`{|}', "/%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("/double", "//double"),
        ("a+b;c=d,e:f@g", "/a+b;c=d,e:f@g"),
    ],
)
def test_a_path_that_came_decoded_is_quoted_again(served: Served, path: str, target: str) -> None:
    assert served.visit(served.address() + path).code == 200
    assert served.heard[-1]["target"] == target


@pytest.mark.parametrize("size", [0, 1, 128 * 1024, 128 * 1024 + 1, 4 * 1024 * 1024])
def test_bodies_pass_both_ways_and_leave_nothing(served: Served, size: int) -> None:
    path, content = served.address(), LARGE[:size]
    served.body = content[::-1]
    got = served.visit(path, "POST", content)
    assert (got.code, got.raw) == (200, content[::-1])
    assert served.bodies[-1] == content
    assert served.heard_headers()["content-length"] == str(size)
    assert (served.contents, served.held) == ({}, {})


def test_bodies_that_are_too_large_are_refused(served: Served) -> None:
    path = served.address()
    refused = served.visit(path, "POST", LARGE + b"x")
    assert (refused.code, refused.json["reason"]) == (413, "PayloadTooLarge")
    assert served.heard == []
    served.fails = {"state": "lost", "reason": "too_large"}
    assert served.visit(path).code == 502
    served.fails, served.body = None, LARGE + b"x"
    assert served.visit(path).code == 503  # no honest daemon passes it


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("failed", "unreachable", 502),
        ("failed", "no_network", 502),
        ("lost", "no_http", 502),
        ("lost", "long_headers", 502),
        ("lost", "timeout", 504),
        ("lost", "io", 503),
    ],
)
def test_a_service_that_gives_no_answer_is_named_by_sandbox_and_port(
    served: Served, state: str, reason: str, code: int
) -> None:
    path = served.address(8123)
    served.fails = {"state": state, "reason": reason}
    refused = served.visit(path, "POST", LARGE)
    assert refused.code == code
    assert served.contents == {}
    if code != 503:
        assert "port 8123 of Sandbox 'mine'" in refused.json["message"]
        assert "the daemon's word" not in refused.json["message"]


@pytest.mark.parametrize(
    "lie",
    [
        {},
        {"status": 101},
        {"status": 600},
        {"headers": [["a"]]},
        {"headers": [["a", 1]]},
        {"size": -1},
        {"content": "!"},
        {"content": None, "held": "../x"},
    ],
)
def test_a_daemon_that_lies_is_not_believed(served: Served, lie: dict[str, Any]) -> None:
    path = served.address()
    honest = {"state": "exited", "status": 200, "headers": [], "size": 1, "content": "eA=="}
    told = {"state": "exited"} if not lie else {**honest, **lie}
    served.rest.world.sandboxes.answers = lambda kind, request: told
    assert served.visit(path).code == 503


def test_a_page_may_ask_its_own_service_for_anything(served: Served) -> None:
    """To its browser the service is another origin, and asks before: the service knows nothing of that."""
    asks = {
        "origin": "null",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-own",
    }
    allowed = served.visit(served.address(), "OPTIONS", headers=asks)
    assert (allowed.code, served.heard) == (204, [])
    assert "PUT" in allowed.headers["access-control-allow-methods"]
    assert allowed.headers["access-control-allow-headers"] == "*"
    assert allowed.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-credentials" not in allowed.headers


def test_other_methods_are_refused(served: Served) -> None:
    refused = served.visit(served.address(), "TRACE")
    assert (refused.code, refused.headers["allow"]) == (405, ", ".join(METHODS))


@pytest.mark.parametrize("headers", [{"upgrade": "websocket"}, {"sec-websocket-key": "x"}])
def test_a_websocket_is_refused_with_words(served: Served, headers: dict[str, str]) -> None:
    refused = served.visit(served.address(), headers={"connection": "Upgrade", **headers})
    assert (refused.code, "WebSocket" in refused.json["message"], served.heard) == (400, True, [])


def test_a_daemon_that_says_nothing_is_waited_for_less_than_a_call_may_take(served: Served) -> None:
    path = served.address()
    served.rest.world.sandboxes.answers = lambda kind, request: None
    before = served.rest.world.clock.now()
    silent = served.visit(path)
    assert (silent.code, silent.json["reason"]) == (503, "ServiceUnavailable")
    assert served.rest.world.clock.now() - before < timedelta(seconds=28)


def test_no_token_is_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    path = served.address()
    event = api_event("GET", f"{path}secret", {}, None, {})
    assert shown_path(event) == "/preview"
    assert shown_path(api_event("GET", "/healthz", {}, None, {})) == "/healthz"
    log(served.rest.gate, event, {"statusCode": 200})
    assert path.split("/")[2] not in caplog.text


def test_the_permission_is_that_of_the_sandbox() -> None:
    rules = [rule for rule in Rest().gate.rules if rule.path.endswith("/previews")]
    assert [(rule.method, rule.permission) for rule in rules] == [
        ("POST", BY_NAME["Sandbox"].permission("write"))
    ]


def test_a_store_that_cannot_remove_spoils_no_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy(scope: Any, name: str) -> None:
        raise StoreUnavailable("busy")

    monkeypatch.setattr(served.rest.world.transfers, "remove", busy)
    assert served.visit(served.address(), "POST", LARGE).code == 200
    assert "busy" in caplog.text
