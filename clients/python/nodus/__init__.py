"""Nodus: run AI agents as durable, exactly-once work.

    import nodus

    agent = nodus.ClaudeAgent("helper", system="You are careful.")
    print(agent.remote("Use the shell to print the Python version"))

``nodus.errors`` holds every error that the client raises.
"""

from nodus import errors
from nodus._agents import ClaudeAgent, Family, GitSource, ModelAgent, Protocol, Source
from nodus._client import Client
from nodus._egress import Egress
from nodus._record import Record
from nodus._resources import AgentRuns, Agents, Applied, Budgets, Resource, Secrets
from nodus._runs import AgentRun
from nodus._version import __version__
from nodus.errors import ApiError, NodusError, RunBlockedError, RunFailedError, WaitTimeoutError

__all__ = [
    "AgentRun",
    "AgentRuns",
    "Agents",
    "ApiError",
    "Applied",
    "Budgets",
    "ClaudeAgent",
    "Client",
    "Egress",
    "Family",
    "GitSource",
    "ModelAgent",
    "NodusError",
    "Protocol",
    "Record",
    "Resource",
    "RunBlockedError",
    "RunFailedError",
    "Secrets",
    "Source",
    "WaitTimeoutError",
    "__version__",
    "errors",
]
