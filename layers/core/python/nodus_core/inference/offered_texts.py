"""What people are told who want to use a model of the catalogue from code of their own (NOD-419, NOD-420, NOD-422)."""

import ipaddress
from typing import Any
from urllib.parse import urlsplit

from nodus_core.inference.catalogue import Offer, packaged_catalogue
from nodus_core.inference.errors import ModelNotOffered

_RATES = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}

_PYTHON = """\
import nodus

agent = nodus.ModelAgent("sandbox-example", model="{model}")
print(agent.remote("Say hello in one sentence."))
"""

_PROMPT = """\
Use the Nodus model {model} from this project's code.
- Call models through the Python package `nodus`: nodus.ModelAgent(NAME, model="{model}"), then agent.remote(PROMPT),
  which returns the answer as text. Nothing else is needed for tool calls: the agent has a sandbox of its own.
- The package is the folder clients/python of the Nodus repository. Never `pip install nodus`: on PyPI that name is
  another project's.
- The package reads the server's address from NODUS_SERVER, the key from NODUS_TOKEN, the project from NODUS_PROJECT.
  Never write a key into a file, a prompt or the output of a command.
- There is no key here by itself. The person stores a Nodus API key in a Secret of the project, names it under
  spec.secrets of the sandbox as NODUS_TOKEN, and sets NODUS_SERVER under spec.env.
- {way}
- Model usage is charged to the project, apart from the sandbox's time.
"""


_ALLOW = "The person allows {host} under spec.network.egress of the sandbox."

_NO_WAY = (
    "The server at {host} is on a machine's own network, which no sandbox reaches: this code works outside of\n"
    "  sandboxes only."
)


def usable(model: str | None) -> tuple[Offer, list[str]]:
    """A model that can call tools, the first one if none is named, and the ids of all such.

    Raises `ModelNotOffered`.
    """
    offers = packaged_catalogue().offers()
    ids = [offer.id for offer in offers]
    for offer in offers:
        if model is None or model in (offer.id, *offer.aliases):
            return offer, ids
    raise ModelNotOffered(
        f"the catalogue has no model {model!r}; it offers: {', '.join(ids) or 'none'}", "model"
    )


def texts(sandbox: str, model: str | None, host: str) -> dict[str, Any]:
    """The Inference tool of a sandbox: rates, a setup prompt for coding tools, a Python example.

    No credential is in it, and none is put into the sandbox (NOD-423). Raises `ModelNotOffered`.
    """
    offer, ids = usable(model)
    found = {word: getattr(offer.prices, name) for word, name in _RATES.items()}
    rates = {word: f"{price:f}" for word, price in found.items() if price is not None}
    window = {"contextWindow": offer.context_window} if offer.context_window else {}
    way = _ALLOW if _can_be_allowed(host) else _NO_WAY
    words = {"model": offer.id, "host": host, "way": way.format(host=host)}
    return {
        "metadata": {"name": sandbox},
        "model": {"id": offer.id, "name": offer.name, **window, "tokenRates": rates},
        "models": ids,
        "host": host,
        "setupPrompt": _PROMPT.format(**words),
        "python": _PYTHON.format(**words),
    }


def _can_be_allowed(host: str) -> bool:
    """Whether an egress policy may name that host: it may name no address, and no name of the machine itself."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name != "localhost" and not name.endswith(".localhost")
    return False
