"""Nodus: run AI agents as durable, exactly-once work.

    import nodus

    agent = nodus.ClaudeAgent("helper", system="You are careful.")
    print(agent.remote("Use the shell to print the Python version"))

``nodus.errors`` holds every error that the client raises.
"""

from nodus import errors
from nodus._agent_spec import ArchiveSource, Family, GitSource, Protocol, Source
from nodus._agentgroups import AgentGroups, AsyncAgentGroups
from nodus._agentruns import AgentRuns, AsyncAgentRuns
from nodus._agents import AsyncClaudeAgent, AsyncModelAgent, ClaudeAgent, ModelAgent
from nodus._client import AsyncClient, Client
from nodus._egress import Egress
from nodus._groups import AgentGroup, AsyncAgentGroup
from nodus._login import Login, login_aws
from nodus._machines import AsyncSandboxes, Sandboxes
from nodus._record import Record
from nodus._resources import Applied, AsyncResource, Resource
from nodus._runs import AgentRun, AsyncAgentRun
from nodus._sandboxes import AsyncSandbox, Sandbox
from nodus._version import __version__
from nodus._watch import Event
from nodus.errors import ApiError, NodusError, RunBlockedError, RunFailedError, WaitTimeoutError

__all__ = [
    "AgentGroup",
    "AgentGroups",
    "AgentRun",
    "AgentRuns",
    "ApiError",
    "Applied",
    "ArchiveSource",
    "AsyncAgentGroup",
    "AsyncAgentGroups",
    "AsyncAgentRun",
    "AsyncAgentRuns",
    "AsyncClaudeAgent",
    "AsyncClient",
    "AsyncModelAgent",
    "AsyncResource",
    "AsyncSandbox",
    "AsyncSandboxes",
    "ClaudeAgent",
    "Client",
    "Egress",
    "Event",
    "Family",
    "GitSource",
    "Login",
    "ModelAgent",
    "NodusError",
    "Protocol",
    "Record",
    "Resource",
    "RunBlockedError",
    "RunFailedError",
    "Sandbox",
    "Sandboxes",
    "Source",
    "WaitTimeoutError",
    "__version__",
    "errors",
    "login_aws",
]
