"""Answers within a user's conversations: adds history and facts, runs the turn, and saves every stage of it."""

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
from assistant.library.collections import ALL, MARK, library_of, split_mention
from assistant.library.shelves import own_library
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.store.conversations import Conversations, Version, is_temporary
from assistant.strategies.shared.strategy import strategy_named
from assistant.text.markers import extract_markers
from assistant.types import Answer, Choices, Exchange, Turn, Wait, Work, new_id, now
from assistant.whole.documents import read_documents
from assistant.whole.work import title
from assistant.wording.views import sources
from ptkb.store import Ptkb

_LOG = logging.getLogger(__name__)
PAUSE = 0.1  # seconds between checks whether what a message waits for is ready
PATIENCE = 30.0  # seconds that a message waits for documents that are being added
INTERNAL_ERROR = "Something went wrong inside Sequitur; the log has the details. Nothing you wrote is lost: try again."

# Wraps the snapshots of a user's turn: to count or time it, or to refuse it before the first snapshot.
Watch = Callable[[str, Iterator[Turn]], Iterator[Turn]]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a turn is stored: in a user's conversation, at its end or as a version of an earlier turn."""

    user: str
    conversation: str
    version: Version | None = None


class PartsSource(Protocol):
    """Where turns get their parts, which take a while to load; `assistant.parts.Loader` is one."""

    @property
    def settings(self) -> Settings:
        """The settings that the parts are made with."""
        ...

    def loaded(self, seconds: float, model: str = "") -> bool:
        """Wait for at most so many seconds; whether loading has ended by then, also that of a chosen `model`."""
        ...

    def waiting(self) -> Wait:
        """What is being loaded, and how much of it."""
        ...

    def lent(self, user: str, choices: Choices, model: str = "") -> AbstractContextManager[Parts]:
        """The parts for a turn of `user`, for as long as it runs; `model` is the id of the model that has to answer.

        Raises:
            SequiturError: the parts aren't available.
        """
        ...


class Chat:
    """What the page talks to. Every method checks that the conversation is the user's own.

    `arrivals` has the documents that are being added; a message waits `PATIENCE` seconds for those of its user.
    """

    def __init__(
        self, conversations: Conversations, ptkb: Ptkb, source: PartsSource, watches: Sequence[Watch] = ()
    ) -> None:
        """`watches` wrap every turn, the last of them outermost."""
        self._conversations, self._ptkb, self._source, self._watches = conversations, ptkb, source, watches
        self.arrivals = Arrivals()

    def ask(self, user: str, conversation: str, utterance: str, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Answer an utterance at the end of a conversation; yields the turn as it grows, saving as it goes.

        An utterance that begins with "@" and the name of a collection is answered from that, and so are the following
        ones, until one names another collection or "@all".

        Closing the generator counts as stopping: what was written is kept.

        Raises:
            SequiturError: before the first snapshot, if the message can't be answered as it stands.
        """
        earlier = self._conversations.get(user, conversation).turns
        last_collection = next((turn.choices.collection for turn in reversed(earlier) if turn.work is None), "")
        utterance, choices = addressed(utterance, user, choices, last_collection, self._source.settings)
        return self._run(
            _Place(user, conversation), self._new_turn(_Place(user, conversation), utterance, earlier, choices), stop
        )

    def once(
        self, user: str, utterance: str, history: Sequence[Exchange], choices: Choices, stop: Event
    ) -> Iterator[Turn]:
        """Answer an utterance outside of any conversation: with the user's facts, but without saving anything.

        Here, too, an utterance may begin with "@" and the name of a collection; see `ask`.

        Raises:
            SequiturError: before the first snapshot, if the message can't be answered as it stands.
        """
        last_collection, history = _without_collections(history, user, self._source.settings)
        utterance, choices = addressed(
            utterance, user, choices, choices.collection or last_collection, self._source.settings
        )
        return self._watched(user, self._with_facts(user, Turn(utterance, history, choices=choices)), stop)

    def within(self, user: str, collection: str, choices: Choices) -> Choices:
        """The choices with this collection of the user's documents as the only source.

        Raises:
            LibraryError: there is no such collection, or it holds no documents.
        """
        return within(choices, library_of(collection, user, self._source.settings), self._source.settings)

    def work(self, user: str, conversation: str, work: Work, choices: Choices, stop: Event) -> Iterator[Turn]:
        """Work on whole documents of the user, at the end of a conversation; yields the turn as it grows.

        Raises:
            SequiturError: before the first snapshot, if the work can't begin.
        """
        place = _Place(user, conversation)
        turn = Turn(title(work), choices=choices, temporary=is_temporary(conversation), work=work)
        return self._run(place, self._read(user, turn), stop)

    def again(
        self, user: str, conversation: str, turn_id: str, choices: Choices, stop: Event, model: str = ""
    ) -> Iterator[Turn]:
        """Answer an earlier utterance again, as if nothing had been said after it; later turns stay as they are.

        If a `model` is named, only that one answers; the turn waits while it is loaded.

        The new reply is stored as a version of the old one. It replaces the old one on the page once it is done, or
        stopped with some text. A reply that fails, or is stopped without text, leaves the old one in place.
        """
        original, earlier, _ = self._find(user, conversation, turn_id)
        place = _Place(user, conversation, Version(turn_id))
        choices = within(choices, original.choices.collection, self._source.settings)
        turn = self._new_turn(place, original.utterance, earlier, choices)
        turn = self._read(user, replace(turn, model=model, work=original.work))
        for turn in self._run(place, turn, stop):
            yield turn
        if not _has_text(turn):
            self._conversations.discard(user, conversation, turn.id)
        elif turn.status != "failed":
            self._conversations.choose(user, conversation, turn.id)

    def compare(
        self, user: str, conversation: str, turn_id: str, strategies: Sequence[str], choices: Choices, stop: Event
    ) -> Iterator[Turn]:
        """Answer an earlier utterance again by two strategies, one after the other; its own reply stays shown.

        The second strategy answers from the passages found for the first. Both answers are stored as versions of the
        reply, and shown side by side until one version is chosen.

        Raises:
            SettingsError: before the first snapshot, if a strategy doesn't exist or both are the same, or the reply is
                work on whole documents.
        """
        _check(strategies)
        original, earlier, is_compared = self._find(user, conversation, turn_id)
        if original.work:
            raise SettingsError("Work on whole documents is done in one way only; answer it again instead.")
        choices = within(choices, original.choices.collection, self._source.settings)
        if is_compared:
            self._conversations.choose(user, conversation, original.id)
        new_turn, searched_turn = self._new_turn(_Place(user, conversation), original.utterance, earlier, choices), None
        for side, strategy in enumerate(strategies, start=1):
            place, chosen = _Place(user, conversation, Version(turn_id, side)), replace(choices, strategy=strategy)
            turn = replace(searched_turn or new_turn, id=new_id(), created=now(), choices=chosen, model="")
            for turn in self._run(place, turn, stop):
                if turn.step == "answer" and not searched_turn:
                    searched_turn = turn
                yield turn
            if not _has_text(turn) and not turn.error:
                self._conversations.discard(user, conversation, turn.id)
            if stop.is_set():
                return

    def _find(self, user: str, conversation: str, turn_id: str) -> tuple[Turn, tuple[Turn, ...], bool]:
        """The turn, those before it, and whether it is being compared."""
        stored_conversation = self._conversations.get(user, conversation)
        position = stored_conversation.position_of(turn_id)
        if position < 0:
            raise SequiturError("This reply is no longer part of the conversation; reload the page.")
        turn = stored_conversation.turns[position]
        return turn, stored_conversation.turns[:position], turn.id in stored_conversation.compared

    def _new_turn(self, place: _Place, utterance: str, earlier: Sequence[Turn], choices: Choices) -> Turn:
        turn = Turn(utterance, exchanges(earlier), choices=choices, temporary=is_temporary(place.conversation))
        return self._with_facts(place.user, replace(turn, unanswered=unanswered(earlier)))

    def _read(self, user: str, turn: Turn) -> Turn:
        """The turn with all passages of the documents that it works on, if it does work on any."""
        if turn.work is None:
            return turn
        passages = read_documents(turn.work, own_library(user), self._source.settings)
        return replace(turn, passages=tuple(replace(passage, own=True) for passage in passages))

    def _with_facts(self, user: str, turn: Turn) -> Turn:
        """The turn with the user's facts, which a temporary turn doesn't read."""
        return turn if turn.temporary else replace(turn, known=tuple(self._ptkb.facts(user)))

    def _run(self, place: _Place, turn: Turn, stop: Event) -> Iterator[Turn]:
        saved_step = None
        try:
            for turn in self._watched(place.user, turn, stop):
                if turn.step != saved_step:
                    self._save(place, turn)
                    saved_step = turn.step
                yield turn
        except SequiturError as error:
            if saved_step is None:
                raise
            turn = replace(turn, status="failed", step="", wait=None, error=str(error))
            self._save(place, turn)
            yield turn
        except GeneratorExit:
            stop.set()
            self._save(place, replace(turn, status="stopped", step="", wait=None))
            raise
        except Exception:  # noqa: BLE001 - the conversation survives any bug, which goes to the log
            _LOG.exception("turn %s failed", turn.id)
            turn = replace(turn, status="failed", step="", wait=None, error=INTERNAL_ERROR)
            self._save(place, turn)
            yield turn

    def _watched(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        turns = self._once_ready(user, turn, stop)
        for watch in self._watches:
            turns = watch(user, turns)
        return turns

    def _once_ready(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        """The turn as it grows, once everything is loaded; facts that were added meanwhile are used."""
        waited = False
        for wait in self._waits(user, stop, turn.model):
            if not waited:
                accepted = flow.accepted(turn.utterance, self._source.settings.turn.max_utterance_chars)
                turn, waited = replace(turn, utterance=accepted, step="load"), True
            yield replace(turn, wait=wait)
        if waited:
            turn = self._with_facts(user, replace(turn, step=""))
            if stop.is_set():
                yield replace(turn, status="stopped")
                return
        yield from self._answered(
            user, turn.with_event("documents_missing") if self.arrivals.wait(user) else turn, stop
        )

    def _waits(self, user: str, stop: Event, model: str) -> Iterator[Wait]:
        """What a message of this user waits for, yielded each time it changes, until nothing is left to wait for."""
        last_wait = None
        while not stop.is_set() and not self._source.loaded(PAUSE if last_wait else 0, model):
            if (wait := self._source.waiting()) != last_wait:
                yield (last_wait := wait)
        deadline = monotonic() + PATIENCE
        while not stop.is_set() and monotonic() < deadline and (arrival := self.arrivals.wait(user)):
            if arrival != last_wait:
                yield (last_wait := arrival)
            stop.wait(PAUSE)

    def _answered(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        with self._source.lent(user, turn.choices, turn.model) as parts:
            yield from flow.run(turn, parts, stop)

    def _save(self, place: _Place, turn: Turn) -> None:
        # the history is stored with the earlier turns: repeated in each turn, it would grow with their square
        self._conversations.save_turn(place.user, place.conversation, replace(turn, history=()), place.version)


def exchanges(turns: Sequence[Turn]) -> tuple[Exchange, ...]:
    """Earlier turns as history: utterance, stand-alone question, and reply without markers and label."""
    return tuple(_exchange(turn, turn.answer) for turn in turns if turn.answer and turn.answer.text)


def unanswered(turns: Sequence[Turn]) -> tuple[Exchange, ...]:
    """Those of the earlier turns that state something and have no reply, as one that was stopped early or failed."""
    unanswered_turns = (turn for turn in turns if turn.stated and not (turn.answer and turn.answer.text))
    return tuple(_exchange(turn, Answer("")) for turn in unanswered_turns)


def _exchange(turn: Turn, answer: Answer) -> Exchange:
    return Exchange(
        turn.utterance,
        turn.question or turn.utterance,
        extract_markers(answer.text, max_number=0).text,
        turn.id,
        answer.origin,
        tuple(fact.id for fact in turn.reasons if fact.stored),
        tuple((source.title, source.quote) for source in sources(turn)),
        turn.stated,
        turn.asks,
        turn.created,
    )


def addressed(
    utterance: str, user: str, choices: Choices, last_collection: str, settings: Settings
) -> tuple[str, Choices]:
    """A message without the collection it begins with ("@recipes how long ..."), and the choices for that collection.

    A message that names none keeps `last_collection`, that of the message before it, "" or "@all" for none.

    Raises:
        LibraryError: there is no such collection, or nothing follows its name.
    """
    mention, text = split_mention(utterance, user, settings)
    return text, within(choices, mention or ("" if last_collection == MARK + ALL else last_collection), settings)


def within(choices: Choices, collection: str, settings: Settings) -> Choices:
    """The choices for this collection ("@recipes") or for everything ("@all"); unchanged for ""."""
    if collection == MARK + ALL:
        library = settings.library if choices.library.startswith(MARK) else choices.library
        return replace(choices, library=library, collection=collection)
    return replace(choices, library=collection, collection=collection) if collection else choices


def _without_collections(
    history: Sequence[Exchange], user: str, settings: Settings
) -> tuple[str, tuple[Exchange, ...]]:
    """The collection that the last of these messages was answered from, and the messages without names of collections.

    A name that is no collection, or none any more, stays in its message.
    """
    last_collection, plain_exchanges = "", list[Exchange]()
    for exchange in history:
        mention, text = "", exchange.utterance
        with suppress(LibraryError):
            mention, text = split_mention(exchange.utterance, user, settings)
        last_collection = "" if mention == MARK + ALL else mention or last_collection
        plain_exchanges.append(replace(exchange, utterance=text, question=text) if mention else exchange)
    return last_collection, tuple(plain_exchanges)


def _has_text(turn: Turn) -> bool:
    return turn.answer is not None and bool(turn.answer.text)


def _check(strategies: Sequence[str]) -> None:
    for name in strategies:
        strategy_named(name)
    if len(set(strategies)) != 2:
        raise SettingsError("Choose two different ways to answer to compare them.")
