"""Groups as objects: what can be asked of them beside what every kind has."""

from __future__ import annotations

from nodus._flow import Item, Stream, stream
from nodus._kinds import AGENT_GROUP
from nodus._pages import LARGEST_PAGE, Pages, items_of
from nodus._readiness import require_available
from nodus._record import Record
from nodus._resources import AsyncResource, Resource, ResourceFlows
from nodus._transport import Call


class AgentGroupsFlows(ResourceFlows):
    """Groups of runs."""

    @stream
    def results(self, name: str) -> Stream[Record]:
        """The cases of an evaluation, one record each: ``task_id``, ``state``, when scored ``verdict`` (NOD-384).

        Raises:
            NotAvailableError: groups are not run yet.
        """
        # The group is asked first: as long as nothing acts on groups, there is nothing below them to be asked.
        require_available(AGENT_GROUP, name, (yield from self._record(Call("GET", self.path(name)))))
        pages = Pages(lambda query: self._read(query, name, "results"), {"limit": str(LARGEST_PAGE)})
        while (page := (yield from pages.next())) is not None:
            for case in items_of(page):
                yield Item(case)


class AgentGroups(AgentGroupsFlows, Resource):
    """Groups of runs; every call returns when it is done."""


class AsyncAgentGroups(AgentGroupsFlows, AsyncResource):
    """Groups of runs; every call is awaited."""
