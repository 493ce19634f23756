"""New lines: whoever has stored one starts it. It is due in any case, so whatever fails here fails no answer."""

import logging

from nodus_core.journal.ports import Executions, Schedules
from nodus_core.kernel.objects import Conversation

log = logging.getLogger(__name__)


def begin(executions: Executions, schedules: Schedules, conversation: Conversation) -> None:
    """Starts a new line's first execution, and has the line kicked at its deadline."""
    try:
        executions.start(conversation.id, conversation.line.generation)
    except Exception:  # the table's stream and the sweeper start it, only later
        log.exception("%s (%s) was not started at once", conversation.object.name, conversation.id)
    ask_for_kick(schedules, conversation)


def ask_for_kick(schedules: Schedules, conversation: Conversation) -> None:
    """Has a new line kicked at its deadline, if it has one."""
    if conversation.deadline is None:
        return
    try:
        schedules.kick_at(conversation.id, conversation.deadline)
    except Exception:  # the sweeper alone sees the deadline then, up to a minute later
        log.exception("no kick at the deadline of %s", conversation.id)
