"""How many messages a person may have answered a day, and the count of what each of them used."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from assistant.errors import LimitError, StoreError
from assistant.settings import LimitSettings
from assistant.store.usage import Usage
from assistant.types import Turn
from assistant.web.clock import Clock

_LOG = logging.getLogger(__name__)


class Allowance:
    """`watch` stands around every turn: it refuses the first that is too many, and keeps what the others cost."""

    def __init__(self, usage: Usage, limits: LimitSettings) -> None:
        self._usage, self._limits = usage, limits

    def watch(self, user: str, turns: Iterator[Turn]) -> Iterator[Turn]:
        """The snapshots as they come. A message that can't be answered as it stands counts as none.

        Raises:
            LimitError: before the first snapshot, if no more are answered today.
        """
        clock, is_counted = Clock(), False
        try:
            for turn in turns:
                is_counted = is_counted or self._begin(user)
                clock.see(turn)
                yield turn
        finally:
            if is_counted:
                self._end(user, clock)

    def _begin(self, user: str) -> bool:
        if not self._usage.begin(user, self._limits.max_daily_turns):
            raise LimitError(
                f"You have had {self._limits.max_daily_turns:,} messages answered today, which is as many as may be; "
                "ask again tomorrow (UTC), or ask whoever runs this page for more."
            )
        return True

    def _end(self, user: str, clock: Clock) -> None:
        try:
            self._usage.end(user, clock.tokens, clock.elapsed)
        except StoreError as error:  # the answer is there; that its cost isn't kept is no reason to lose it
            _LOG.warning("the cost of a turn was not kept: %s", error)
