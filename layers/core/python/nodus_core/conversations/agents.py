"""Finding the agent that a name means: the project's, else the template of that name (NODQ-22)."""

from nodus_core.access.door import SYSTEM_ORG, SYSTEM_PROJECT
from nodus_core.conversations.shelf import Shelf
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import Object, ObjectKey


def agent_named(shelf: Shelf, org: str, project: str, name: str) -> Object:
    """The agent for a project's runs. Raises `Refusal` `NotFound` naming `spec.agent`."""
    for home in ((org, project), (SYSTEM_ORG, SYSTEM_PROJECT)):
        obj = shelf.journal.object(ObjectKey(*home, "Agent", name))
        if obj is not None:
            return obj
    message = f"there is no agent {name!r} in this project, and no template of that name"
    cause = Cause("spec.agent", "names no agent", "FieldValueNotFound")
    raise Refusal("NotFound", message, causes=(cause,), kind="Agent", name=name)
