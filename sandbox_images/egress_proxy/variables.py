"""What commands are told of the proxy (NOD-459)."""

from collections.abc import Mapping

PORT = 3128
"""Where commands find it, on their own loopback."""

_ADDRESS = f"http://127.0.0.1:{PORT}"
_OWN = "localhost,127.0.0.1,::1"

PROXY_VARIABLES: Mapping[str, str] = {
    "HTTP_PROXY": _ADDRESS,
    "HTTPS_PROXY": _ADDRESS,
    "NO_PROXY": _OWN,
    "http_proxy": _ADDRESS,
    "https_proxy": _ADDRESS,
    "no_proxy": _OWN,
    "NODE_USE_ENV_PROXY": "1",  # node reads the others only when it is told to
}
