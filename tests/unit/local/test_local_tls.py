"""The certificate of the local cloud's TLS listener, as a client meets it."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from localstack.cloud import tls
from localstack.paths import State


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


def check(state: State, host: str) -> None:
    """Shake hands with a listener of these files as one who trusts the authority alone. Raises `ssl.SSLError`."""
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(state.tls / "cert.pem", state.tls / "key.pem")
    trusting = ssl.create_default_context(cafile=str(state.tls_authority))
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(ours, theirs, server_hostname=host)
    server = served.wrap_bio(theirs, ours, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue


def files(state: State) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in state.tls.iterdir()}


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_who_trusts_the_authority_trusts_the_listener(state: State, host: str) -> None:
    certificate, key = tls.ensure(state)
    assert (certificate, key) == (state.tls / "cert.pem", state.tls / "key.pem")
    check(state, host)
    assert {oct(file.stat().st_mode & 0o777) for file in state.tls.iterdir()} == {"0o600"}
    assert oct(state.tls.stat().st_mode & 0o777) == "0o700"


def test_no_other_host_can_use_it(state: State) -> None:
    tls.ensure(state)
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'nodus\.example\.com'"):
        check(state, "nodus.example.com")


def test_what_is_good_is_kept(state: State) -> None:
    tls.ensure(state)
    before = files(state)
    tls.ensure(state)
    assert files(state) == before


@pytest.mark.parametrize("days", [0, 29, 31])
def test_what_runs_out_soon_is_renewed(state: State, monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(tls, "VALID", datetime.timedelta(days=days, hours=1))
        tls.ensure(state)
    before = files(state)
    tls.ensure(state)
    assert (files(state) == before) is (days == 31)
    check(state, "localhost")


def test_a_certificate_for_other_hosts_is_made_anew(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(tls, "NAMES", (x509.DNSName("nodus.example.com"),))
        tls.ensure(state)
    tls.ensure(state)
    check(state, "127.0.0.1")


@pytest.mark.parametrize("renewed", [False, True])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_process_that_was_killed_between_the_files_leaves_none_that_do_not_fit(
    state: State, monkeypatch: pytest.MonkeyPatch, written: int, *, renewed: bool
) -> None:
    """The next start makes all of them anew, whichever of old and new lie side by side."""
    if renewed:
        with monkeypatch.context() as patched:
            patched.setattr(tls, "VALID", datetime.timedelta(days=1))
            tls.ensure(state)
    done: list[Path] = []

    def killed(path: Path, text: str) -> None:
        if len(done) == written:
            raise KeyboardInterrupt
        write(path, text)
        done.append(path)

    write = tls.write_private
    with monkeypatch.context() as patched:
        patched.setattr(tls, "write_private", killed)
        with pytest.raises(KeyboardInterrupt):
            tls.ensure(state)
    assert done[:1] == [state.tls_authority][:written], "who trusts it can be told before anything is served"
    tls.ensure(state)
    check(state, "localhost")


@pytest.mark.parametrize("name", ["ca.pem", "cert.pem", "key.pem"])
@pytest.mark.parametrize("other", ["another cloud's", "broken", "empty", "missing"])
def test_a_file_that_does_not_fit_the_others_is_made_anew_with_them(
    state: State, tmp_path: Path, name: str, other: str
) -> None:
    tls.ensure(state)
    if other == "another cloud's":
        elsewhere = State(tmp_path / "elsewhere")
        elsewhere.folder.mkdir()
        tls.ensure(elsewhere)
        (state.tls / name).write_bytes((elsewhere.tls / name).read_bytes())
    elif other == "broken":
        (state.tls / name).write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    elif other == "empty":
        (state.tls / name).write_text("")
    else:
        (state.tls / name).unlink()
    tls.ensure(state)
    check(state, "localhost")
