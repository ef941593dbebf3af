"""Answers that belong to no conversation: a turn with the user's facts and documents, of which nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from assistant.chat import Chat
from assistant.errors import BusyError
from assistant.runs import PAUSE, Run, Runs
from assistant.store.shared import BUSY
from assistant.types import Choices, Exchange, Turn
from assistant.wording.views import headline, wait_progress

# Where a conversation's id stands in the page's runs: a user has one answer written here at a time.
API_CONVERSATION = "api"


@dataclass(frozen=True)
class Answers:
    """Begins answers; `choices` gives what a user chose for them."""

    chat: Chat
    runs: Runs
    choices: Callable[[str], Choices]

    async def begin(
        self, user: str, utterance: str, history: Sequence[Exchange] = (), collection: str | None = None
    ) -> Run:
        """An answer to the utterance, begun; where a `collection` of the user's is named, from its documents alone.

        Raises:
            LibraryError: there is no such collection, or no document in it.
            BusyError: the user's answer before this one is still being written, or others are.
            SequiturError: the message can't be answered as it stands.
        """
        return await asyncio.to_thread(self._begin, user, utterance, history, collection)

    def _begin(self, user: str, utterance: str, history: Sequence[Exchange], collection: str | None) -> Run:
        choices = self.choices(user)
        if collection:
            choices = self.chat.within(user, collection, choices)
        try:
            return self.runs.start(
                user, API_CONVERSATION, lambda stop: self.chat.once(user, utterance, history, choices, stop)
            )
        except BusyError as error:
            if str(error) != BUSY:
                raise
            raise BusyError("Another answer is being written for you; ask again once it is there.") from error


async def follow(run: Run) -> AsyncGenerator[Turn, None]:
    """The newest snapshot, ten times a second, until the last; whoever leaves before that stops the answer."""
    try:
        while not run.over:
            run.mark_watched()
            yield run.turn
            await asyncio.sleep(PAUSE)
        yield run.turn
    finally:
        run.stop.set()


def progress(turn: Turn) -> str:
    """What a running turn does, in one line."""
    return ", ".join(filter(None, (headline(turn), wait_progress(turn))))
