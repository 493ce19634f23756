"""A provider on loopback that speaks TLS under a public name, and the authority that vouches for it."""

import datetime
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "models.example.com"


@dataclass(frozen=True)
class Request:
    """What came in; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Told:
    """What goes out; with `drip` byte by byte, until the test is over."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    drip: bool = False


Tell = Callable[[Request], Told | None]
"""The answer to a request; None cuts the connection."""


@dataclass
class Provider:
    """A running provider; `certificates` is its authority's, in PEM."""

    port: int
    certificates: str
    tell: Tell
    requests: list[Request] = field(default_factory=list[Request])
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}/v1"


@contextmanager
def tls_provider(folder: Path, tell: Tell, host: str = HOST) -> Iterator[Provider]:
    """Serves `tell` under a certificate for `host`."""
    context, authority = _identity(folder, host)
    with _Server(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        provider = Provider(server.server_address[1], authority, tell)
        server.RequestHandlerClass = _handler(provider)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield provider
        finally:
            provider.over.set()
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a caller that hangs up, or does not trust us."""


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            provider.requests.append(request)
            told = provider.tell(request)
            self.close_connection = True
            if told is None:
                return
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(told.body)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if not told.drip:
                self.wfile.write(told.body)
                return
            for byte in told.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                if provider.over.wait(0.05):
                    return

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the requests are in `requests`."""

    return Handler


def _identity(folder: Path, host: str) -> tuple[ssl.SSLContext, str]:
    """A server's TLS settings with a certificate for the host, and the PEM of the authority that signed it."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of a test")])
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)

    def builder() -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .issuer_name(name)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        builder()
        .subject_name(name)
        .public_key(authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_key_usage(), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        builder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))
        .public_key(key.public_key())
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    file = folder / "provider.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, authority.public_bytes(serialization.Encoding.PEM).decode()


def _key_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
