"""Lines that wait for money: when an account gets some, they are kicked. A waiting line itself costs nothing.

Whoever frees money of a hungry account makes it due in the same commit; the reactor hears of it at once, and the
sweeper finds it in any case.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from nodus_core.conversations.kicks import Kicks
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import Account

MOST_KICKED = 50
"""Waiters that are kicked for one piece of news: the others are looked at again."""

LOOK_AGAIN = timedelta(seconds=60)
"""After which an account is looked at once more whose waiters were kicked: one of them may not have taken its share."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Waiters:
    """Kicks lines that wait for money."""

    kicks: Kicks

    def serve(self, account_id: str) -> int:
        """Kicks the lines for which an account has enough now, all of them when its Budget is gone.

        Returns how many. More of them may be kicked than the money suffices for: those rest again.
        """
        accounts = self.kicks.journal.accounts
        account = accounts.account(account_id)
        if account is None:
            return 0
        waiting = list(accounts.waiters(account_id))
        ready = (waiter for waiter in waiting if account.closed or waiter.need <= account.available)
        kicked = 0
        for waiter in islice(ready, MOST_KICKED):
            self.kicks.kick(waiter.conversation)
            kicked += 1
        try:
            self._seen(account, kicked=kicked, left=bool(waiting))
        except ConditionFailed:
            log.info("account %s has news again and stays due", account_id)
        return kicked

    def _seen(self, account: Account, *, kicked: int, left: bool) -> None:
        accounts = self.kicks.journal.accounts
        if account.closed and not left and not account.held:
            accounts.remove(account)
            return
        again = self.kicks.clock.now() + LOOK_AGAIN if kicked else None
        accounts.calm(account, again, hungry=left)
