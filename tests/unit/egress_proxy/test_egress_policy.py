"""Which hosts, ports and addresses a policy lets out."""

from __future__ import annotations

import ipaddress

import pytest
from egress_proxy.addresses import why_blocked
from egress_proxy.policy import Policy, Rule, canonical, place
from nodus_core.resources.addresses import is_public

pytestmark = pytest.mark.req("NOD-458", "NOD-460")

BLOCKED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.7",
    "100.127.255.255",
    "127.0.0.1",
    "127.9.9.9",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.169.253",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2002:a9fe:a9fe::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "2606:4700::1111",
    "203.0.113.80",
]


@pytest.mark.parametrize("address", BLOCKED)
def test_addresses_that_are_not_the_public_internet_are_blocked(address: str) -> None:
    assert why_blocked(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not(address: str) -> None:
    assert why_blocked(address) is None


@pytest.mark.parametrize("address", BLOCKED)
def test_no_address_is_blocked_for_sandboxes_and_open_for_models(address: str) -> None:
    stricter_here = address in (
        "::ffff:8.8.8.8",
        "192.0.0.8",
    )  # carries a public one; not private for every Python
    assert stricter_here or not is_public(ipaddress.ip_address(address))


def test_an_address_of_the_own_machine_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("egress_proxy.addresses._BLOCKED_4", ())
    assert "own machine" in (why_blocked("127.0.0.1") or "")


@pytest.mark.parametrize(
    ("rule", "host", "port", "covered"),
    [
        ("github.com", "github.com", 443, True),
        ("github.com", "github.com", 80, True),
        ("GitHub.COM.", "github.com", 443, True),
        ("github.com", "github.com", 22, False),
        ("github.com", "api.github.com", 443, False),
        ("github.com", "evilgithub.com", 443, False),
        ("github.com", "github.com.evil.org", 443, False),
        ("*.github.com", "api.github.com", 443, True),
        ("*.github.com", "a.b.github.com", 443, True),
        ("*.github.com", "github.com", 443, False),
        ("*.github.com", "evilgithub.com", 443, False),
        ("github.com:22", "github.com", 22, True),
        ("github.com:22", "github.com", 443, False),
        ("*.github.com:8443", "api.github.com", 8443, True),
        ("*.github.com:8443", "api.github.com", 443, False),
    ],
)
def test_what_an_entry_covers(rule: str, host: str, port: int, covered: bool) -> None:
    assert Rule.parse(rule).covers(host, port) is covered


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "*.",
        "a b.c",
        "github.com:",
        "github.com:0",
        "github.com:65536",
        "a.*.com",
        "[::1]:80",
        "x..y",
        "é.fr",
    ],
)
def test_what_is_no_entry(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        Rule.parse(text)


@pytest.mark.parametrize(
    "spelling",
    [
        "2852039166",
        "0xa9fea9fe",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "1.2.3",
        "1.2.3.0x4",
        "fe80::1%eth0",
        "",
        ".",
        "a_.-",
    ],
)
def test_spellings_that_programs_read_in_two_ways_are_no_hosts(spelling: str) -> None:
    assert canonical(spelling) is None


def test_a_place_has_a_port_and_brackets_around_colons() -> None:
    assert place("A.example.com.:443") == ("a.example.com", 443)
    assert place("[2606:4700::1111]:80") == ("2606:4700::1111", 80)
    for text in ("example.com", "::1:80", "[1.2.3.4]:80", "example.com:٤٤٣", ":80"):
        with pytest.raises(ValueError, match="is not"):
            place(text)


def test_open_takes_the_webs_ports_and_what_is_trusted() -> None:
    policy = Policy.of("Open", trusted=["files.test:9000=127.0.0.1:41000"])
    assert policy.allows("example.com", 443)
    assert policy.allows("files.test", 9000)
    assert policy.allows("example.com", 22) is None


def test_what_is_trusted_is_led_to_an_address_and_no_name() -> None:
    for word in ("files.test:9000", "files.test:9000=localhost:80", "files.test=127.0.0.1:80"):
        with pytest.raises(ValueError, match=r"is not|does not appear"):
            Policy.of("Open", trusted=[word])


def test_deny_has_no_proxy() -> None:
    with pytest.raises(ValueError, match="Deny"):
        Policy.of("Deny")
