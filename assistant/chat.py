"""Answers within a user's conversations: history and facts in, the turn run, every stage of it saved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from threading import Event

from assistant import turn as flow
from assistant.citations import read
from assistant.conversation import Conversations
from assistant.errors import SequiturError
from assistant.types import Choices, Exchange, Parts, Turn
from ptkb.store import Ptkb

_LOG = logging.getLogger(__name__)
BROKEN = "Something went wrong inside Sequitur; the log has the details. Nothing you wrote is lost: try again."


class Chat:
    """What the page and the command line talk to. Every method checks that the conversation is the user's own.

    `parts_for(user, choices)` gives the parts for a turn, or raises SequiturError while they are still loading.
    """

    def __init__(self, conversations: Conversations, ptkb: Ptkb, parts_for: Callable[[str, Choices], Parts]) -> None:
        self._conversations, self._ptkb, self._parts_for = conversations, ptkb, parts_for

    def ask(self, user: str, conversation: str, utterance: str, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Answer an utterance at the end of a conversation; yields the turn as it grows, saving as it goes.

        Closing the generator counts as stopping: what was written is kept.

        Raises:
            SequiturError: before the first snapshot, if the message can't be answered as it stands.
        """
        earlier = self._conversations.get(user, conversation).turns
        return self._run(user, conversation, utterance, earlier, choices, stop)

    def again(self, user: str, conversation: str, turn_id: str, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Answer an earlier utterance anew, as if what followed had not been said.

        The old turn goes once the new one is done.
        """
        turns = self._conversations.get(user, conversation).turns
        place = next((n for n, one in enumerate(turns) if one.id == turn_id), None)
        if place is None:
            raise SequiturError("This reply is no longer part of the conversation; reload the page.")
        for turn in self._run(user, conversation, turns[place].utterance, turns[:place], choices, stop):
            yield turn
        if turn.status == "done":
            self._conversations.remove_turn(user, conversation, turn_id)

    def _run(
        self, user: str, conversation: str, utterance: str, earlier: Sequence[Turn], choices: Choices, stop: Event
    ) -> Iterator[Turn]:
        parts = self._parts_for(user, choices)
        turn = Turn(utterance, exchanges(earlier), tuple(self._ptkb.facts(user)), choices)
        stream, saved_at = flow.run(turn, parts, stop), None
        try:
            for turn in stream:
                if turn.step != saved_at:
                    self._conversations.save_turn(user, conversation, turn)
                    saved_at = turn.step
                yield turn
        except SequiturError:
            raise
        except GeneratorExit:
            stop.set()
            self._conversations.save_turn(user, conversation, turn.grow(status="stopped", step=""))
            raise
        except Exception:  # noqa: BLE001 - the conversation outlives any bug, and the log tells of it
            _LOG.exception("turn %s failed", turn.id)
            turn = turn.grow(status="failed", step="", error=BROKEN)
            self._conversations.save_turn(user, conversation, turn)
            yield turn


def exchanges(turns: Sequence[Turn]) -> tuple[Exchange, ...]:
    """Earlier turns as history: what was said, what it meant, and the reply without its markers."""
    return tuple(
        Exchange(turn.utterance, turn.question or turn.utterance, read(turn.answer.text).text)
        for turn in turns
        if turn.answer is not None and turn.answer.text
    )
