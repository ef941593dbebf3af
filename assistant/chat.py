"""Answers within a user's conversations: history and facts in, the turn run, every stage of it saved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from threading import Event
from time import monotonic
from typing import Protocol

from assistant import turn as flow
from assistant.errors import LibraryError, SequiturError, SettingsError
from assistant.library.arrivals import Arrivals
from assistant.library.collections import ALL, MARK, library_of, mentioned
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.store.conversations import Conversation, Conversations, Version, is_temporary
from assistant.strategies.shared.strategy import strategy_named
from assistant.text.markers import read
from assistant.types import Choices, Exchange, Turn, Wait, Work, new_id, now
from assistant.whole.documents import own_library, read_documents
from assistant.whole.work import title
from assistant.wording.views import sources
from ptkb.store import Ptkb

_LOG = logging.getLogger(__name__)
PAUSE = 0.1  # seconds between looks at whether what a message waits for is there
PATIENCE = 30.0  # seconds that a message waits for documents that are being added
BROKEN = "Something went wrong inside Sequitur; the log has the details. Nothing you wrote is lost: try again."

# Stands around the snapshots of a user's turn: to count or time it, or to refuse it before the first of them.
Watch = Callable[[str, Iterator[Turn]], Iterator[Turn]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a turn is kept: in a user's conversation, at its end or as a version of an earlier turn."""

    user: str
    conversation: str
    version: Version | None = None


class Source(Protocol):
    """Where turns get their parts, which take a while to load; `assistant.parts.Loader` is one."""

    @property
    def settings(self) -> Settings:
        """The settings that the parts are made by."""
        ...

    def loaded(self, seconds: float, model: str = "") -> bool:
        """Whether loading has ended, well or not, within so many seconds, also that of a `model` that was chosen."""
        ...

    def waiting(self) -> Wait:
        """What is being loaded, and how far that is."""
        ...

    def lent(self, user: str, choices: Choices, model: str = "") -> AbstractContextManager[Parts]:
        """The parts for a turn of `user`, for as long as it runs; `model` is the id of the one that must write it.

        Raises:
            SequiturError: they can't be had.
        """
        ...


class Chat:
    """What the page talks to. Every method checks that the conversation is the user's own.

    `arrivals` has the documents that are being added; a message waits `PATIENCE` seconds for those of its user.
    """

    def __init__(self, conversations: Conversations, ptkb: Ptkb, source: Source, watches: Sequence[Watch] = ()) -> None:
        """`watches` stand around every turn, the last of them outermost."""
        self._conversations, self._ptkb, self._source, self._watches = conversations, ptkb, source, watches
        self.arrivals = Arrivals()

    def ask(self, user: str, conversation: str, utterance: str, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Answer an utterance at the end of a conversation; yields the turn as it grows, saving as it goes.

        One that begins with "@" and the name of a collection is answered from that, and so are those after it, until
        one begins with another's name or "@all".

        Closing the generator counts as stopping: what was written is kept.

        Raises:
            SequiturError: before the first snapshot, if the message can't be answered as it stands.
        """
        earlier = self._conversations.get(user, conversation).turns
        before = earlier[-1].choices.collection if earlier else ""
        utterance, choices = addressed(utterance, user, choices, before, self._source.settings)
        return self._run(
            _Place(user, conversation), self._new(_Place(user, conversation), utterance, earlier, choices), stop
        )

    def once(
        self, user: str, utterance: str, history: Sequence[Exchange], choices: Choices, stop: Event
    ) -> Iterator[Turn]:
        """Answer an utterance that belongs to no conversation: the user's facts are known, and nothing is saved.

        Here as well an utterance may begin with "@" and the name of a collection; see `ask`.

        Raises:
            SequiturError: before the first snapshot, if the message can't be answered as it stands.
        """
        before, history = _before(history, user, self._source.settings)
        utterance, choices = addressed(utterance, user, choices, choices.collection or before, self._source.settings)
        return self._watched(user, self._knowing(user, Turn(utterance, history, choices=choices)), stop)

    def within(self, user: str, collection: str, choices: Choices) -> Choices:
        """The choices, but to answer from this collection of the user's documents alone.

        Raises:
            LibraryError: there is no such collection, or no document in it.
        """
        return within(choices, library_of(collection, user, self._source.settings), self._source.settings)

    def work(self, user: str, conversation: str, work: Work, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Work on whole documents of the user's, at the end of a conversation; yields the turn as it grows.

        Raises:
            SequiturError: before the first snapshot, if it can't be begun.
        """
        place = _Place(user, conversation)
        turn = Turn(title(work), choices=choices, temporary=is_temporary(conversation), work=work)
        return self._run(place, self._read(user, turn), stop)

    def again(
        self, user: str, conversation: str, turn_id: str, choices: Choices, stop: Event, model: str = ""
    ) -> Iterator[Turn]:
        """Answer an earlier utterance anew, as if what followed had not been said; what followed stays as it is.

        Where a `model` is named, no other answers: it is waited for while it is loaded.

        The new reply is a version of the old one. It is shown instead once it is done, or stopped with something
        written; one that fails, or is stopped before that, leaves the old one where it is.
        """
        talk, place = self._find(user, conversation, turn_id)
        where = _Place(user, conversation, Version(turn_id))
        choices = within(choices, talk.turns[place].choices.collection, self._source.settings)
        turn = self._new(where, talk.turns[place].utterance, talk.turns[:place], choices)
        turn = self._read(user, replace(turn, model=model, work=talk.turns[place].work))
        for turn in self._run(where, turn, stop):
            yield turn
        if not _written(turn):
            self._conversations.discard(user, conversation, turn.id)
        elif turn.status != "failed":
            self._conversations.choose(user, conversation, turn.id)

    def compare(
        self, user: str, conversation: str, turn_id: str, strategies: Sequence[str], choices: Choices, stop: Event
    ) -> Iterator[Turn]:
        """Answer an earlier utterance anew by two strategies, one after the other; the reply to it stays shown.

        The second answers from what was found for the first. Both are kept as versions of that reply, and as compared
        to each other until one version is chosen.

        Raises:
            SettingsError: before the first snapshot, if there is no such strategy or both are the same.
        """
        _check(strategies)
        talk, place = self._find(user, conversation, turn_id)
        asked, earlier = talk.turns[place], talk.turns[:place]
        choices = within(choices, asked.choices.collection, self._source.settings)
        if asked.id in talk.compared:
            self._conversations.choose(user, conversation, asked.id)
        fresh, found = self._new(_Place(user, conversation), asked.utterance, earlier, choices), None
        for side, strategy in enumerate(strategies, start=1):
            where, way = _Place(user, conversation, Version(turn_id, side)), replace(choices, strategy=strategy)
            turn = replace((found or fresh), id=new_id(), created=now(), choices=way, model="")
            for turn in self._run(where, turn, stop):
                if turn.step == "answer" and not found:
                    found = turn
                yield turn
            if not _written(turn) and not turn.error:
                self._conversations.discard(user, conversation, turn.id)
            if stop.is_set():
                return

    def _find(self, user: str, conversation: str, turn_id: str) -> tuple[Conversation, int]:
        talk = self._conversations.get(user, conversation)
        place = talk.place(turn_id)
        if place < 0:
            raise SequiturError("This reply is no longer part of the conversation; reload the page.")
        return talk, place

    def _new(self, place: _Place, utterance: str, earlier: Sequence[Turn], choices: Choices) -> Turn:
        turn = Turn(utterance, exchanges(earlier), choices=choices, temporary=is_temporary(place.conversation))
        return self._knowing(place.user, turn)

    def _read(self, user: str, turn: Turn) -> Turn:
        """The turn with all passages of the documents that it works on, if it does."""
        if turn.work is None:
            return turn
        passages = read_documents(turn.work, own_library(user), self._source.settings)
        return replace(turn, passages=tuple(replace(one, own=True) for one in passages))

    def _knowing(self, user: str, turn: Turn) -> Turn:
        """The turn with the user's facts, of which a temporary one reads none."""
        return turn if turn.temporary else replace(turn, known=tuple(self._ptkb.facts(user)))

    def _run(self, place: _Place, turn: Turn, stop: Event) -> Iterator[Turn]:
        saved_at = None
        try:
            for turn in self._watched(place.user, turn, stop):
                if turn.step != saved_at:
                    self._save(place, turn)
                    saved_at = turn.step
                yield turn
        except SequiturError as error:
            if saved_at is None:
                raise
            turn = replace(turn, status="failed", step="", wait=None, error=str(error))
            self._save(place, turn)
            yield turn
        except GeneratorExit:
            stop.set()
            self._save(place, replace(turn, status="stopped", step="", wait=None))
            raise
        except Exception:  # noqa: BLE001 - the conversation outlives any bug, and the log tells of it
            _LOG.exception("turn %s failed", turn.id)
            turn = replace(turn, status="failed", step="", wait=None, error=BROKEN)
            self._save(place, turn)
            yield turn

    def _watched(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        turns = self._once_ready(user, turn, stop)
        for watch in self._watches:
            turns = watch(user, turns)
        return turns

    def _once_ready(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        """The turn as it grows, once there is something to answer it with; facts told meanwhile are known to it."""
        waited = False
        for wait in self._waits(user, stop, turn.model):
            if not waited:
                accepted = flow.accepted(turn.utterance, self._source.settings.turn.max_utterance_chars)
                turn, waited = replace(turn, utterance=accepted, step="load"), True
            yield replace(turn, wait=wait)
        if waited:
            turn = self._knowing(user, replace(turn, step=""))
            if stop.is_set():
                yield replace(turn, status="stopped")
                return
        yield from self._answered(
            user, turn.with_event("documents_missing") if self.arrivals.wait(user) else turn, stop
        )

    def _waits(self, user: str, stop: Event, model: str) -> Iterator[Wait]:
        """What a message of this user waits for, each time that this changes, until it need not wait any longer."""
        told = None
        while not stop.is_set() and not self._source.loaded(PAUSE if told else 0, model):
            if (wait := self._source.waiting()) != told:
                yield (told := wait)
        end = monotonic() + PATIENCE
        while not stop.is_set() and monotonic() < end and (arriving := self.arrivals.wait(user)):
            if arriving != told:
                yield (told := arriving)
            stop.wait(PAUSE)

    def _answered(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        with self._source.lent(user, turn.choices, turn.model) as parts:
            yield from flow.run(turn, parts, stop)

    def _save(self, place: _Place, turn: Turn) -> None:
        # what was said before is stored with the turns before: in each turn it would grow with their square
        self._conversations.save_turn(place.user, place.conversation, replace(turn, history=()), place.version)


def exchanges(turns: Sequence[Turn]) -> tuple[Exchange, ...]:
    """Earlier turns as history: what was said, what it meant, and the reply without its markers and its label."""
    return tuple(
        Exchange(
            turn.utterance,
            turn.question or turn.utterance,
            read(turn.answer.text, most=0).text,
            turn.id,
            turn.answer.origin,
            tuple(fact.id for fact in turn.reasons),
            tuple((source.title, source.quote) for source in sources(turn)),
        )
        for turn in turns
        if turn.answer is not None and turn.answer.text
    )


def addressed(utterance: str, user: str, choices: Choices, before: str, settings: Settings) -> tuple[str, Choices]:
    """A message without the collection that it begins with ("@recipes how long ..."), and the choices for that one.

    A message that names none goes on with `before`, the collection of the message before it, "" for none.

    Raises:
        LibraryError: there is no such collection, or nothing follows its name.
    """
    named, rest = mentioned(utterance, user, settings)
    return rest, within(choices, named or before, settings)


def within(choices: Choices, collection: str, settings: Settings) -> Choices:
    """The choices, but to answer from this collection ("@recipes"), or from everything ("@all"); as they are for ""."""
    if collection == MARK + ALL:
        library = settings.library if choices.library.startswith(MARK) else choices.library
        return replace(choices, library=library, collection="")
    return replace(choices, library=collection, collection=collection) if collection else choices


def _before(history: Sequence[Exchange], user: str, settings: Settings) -> tuple[str, tuple[Exchange, ...]]:
    """The collection that the last of these messages were answered from, and all of them without such names.

    What is no collection, or none any more, is left in its message, and names nothing.
    """
    collection, plain = "", list[Exchange]()
    for one in history:
        named, rest = "", one.utterance
        with suppress(LibraryError):
            named, rest = mentioned(one.utterance, user, settings)
        collection = "" if named == MARK + ALL else named or collection
        plain.append(replace(one, utterance=rest, question=rest) if named else one)
    return collection, tuple(plain)


def _written(turn: Turn) -> bool:
    return turn.answer is not None and bool(turn.answer.text)


def _check(strategies: Sequence[str]) -> None:
    for name in strategies:
        strategy_named(name)
    if len(set(strategies)) != 2:
        raise SettingsError("Choose two different ways to answer to compare them.")
