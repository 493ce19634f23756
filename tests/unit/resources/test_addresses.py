"""Addresses of providers: what points outward, in every spelling (FLD-13)."""

import pytest
from nodus_core.resources.addresses import why_not_public


@pytest.mark.req("FLD-13", "NOD-116")
@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "HTTP://api.example.com",
        "https://",
        "https:///v1",
        "https:api.example.com",
        "//api.example.com",
        "ftp://api.example.com",
        "https://user@api.example.com",
        "https://@api.example.com",
        "https://api.example.com:0/",
        "https://api.example.com:99999/",
        "https://api.example.com:x/",
        "https://api.example.com/?key=1",
        "https://api.example.com/#x",
        "https://api.example.com /v1",
        "https://api.example.com\\@10.0.0.1/",
        "https://api.example.com\n.evil/",
        "https://localhost/v1",
        "https://LOCALHOST",
        "https://x.localhost",
        "https://printer.local",
        "https://metadata.google.internal",
        "https://intranet",
        "https://127.0.0.1",
        "https://127.1",
        "https://0177.0.0.1",
        "https://0x7f000001",
        "https://2130706433",
        "https://127.0.0.1.",
        "https://0.0.0.0",
        "https://10.0.0.5/v1",
        "https://172.16.0.1",
        "https://192.168.1.1",
        "https://169.254.169.254",
        "https://169.254.170.2",
        "https://100.64.0.7",
        "https://198.18.0.1",
        "https://224.0.0.1",
        "https://255.255.255.255",
        "https://[::1]",
        "https://[::]",
        "https://[::ffff:127.0.0.1]",
        "https://[::127.0.0.1]",
        "https://[64:ff9b::a9fe:a9fe]",
        "https://[2002:7f00:1::]",
        "https://[fe80::1]",
        "https://[fe80::1%25eth0]",
        "https://[fd00:ec2::254]",
        "https://[ff02::1]",
        "https://[zz::1]",
        "https://[fec0::1]",
        "https://[v1.a]/v1",
        "https://[v1.a.example.com]/v1",
        "https://[2606:4700::1111%25eth0]/v1",
        "https://1.2.3.999/v1",
        "https://08.8.8.8/v1",
        "https://8.8.8.010/v1",
        "https://134744072/v1",
        "https://api.example.123/v1",
        "https://[3fff::1]",
        "https://192.88.99.1",
        "https://ⓛocalhost.example",
        "https://api.example.com.",
        "https://a..example.com",
        "https://" + "a" * 64 + ".example.com",
        "https://" + "a" * 3000 + ".example.com",
    ],
)
def test_inward_addresses_are_refused(url: str) -> None:
    assert why_not_public(url)


@pytest.mark.req("NOD-115")
@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/v1",
        "HTTPS://API.Example.com:8443/v1/",
        "https://8.8.8.8/v1",
        "https://[2606:4700::1111]/v1",
        "https://xn--bcher-kva.example/v1",
    ],
)
def test_public_addresses_are_taken(url: str) -> None:
    assert why_not_public(url) is None
