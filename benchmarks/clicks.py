"""What people do at the page, one click after the other, and what they may count on afterwards.

A click counts as acknowledged once its last update has come. Whatever is acknowledged must be in the stores, however
the process that served it ended; what was under way may be there or not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlalchemy import Engine

from assistant.library.index import list_documents
from assistant.library.shelves import own_library
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.users import DEFAULT_USER
from assistant.types import Fact, Turn
from benchmarks.light import MARK
from benchmarks.visitor import EventReply, Visitor
from ptkb.store import Ptkb

KINDS = ("answer", "version", "undo", "fact added", "fact changed", "fact deleted", "upload", "removal of a document")
WEIGHTS = (5, 2, 2, 4, 2, 1, 2, 1)
LONG = " It was written down by somebody who counts steps, doors and lamps in a house without windows." * 40


@dataclass
class Ledger:
    """What must be there: texts of facts, marks of questions with how many versions their reply has, documents.

    `doubtful` is what the click under way changes, either state of which is right if the process is killed meanwhile;
    `unfinished` are questions whose answer a kill broke off.
    """

    facts: set[str] = field(default_factory=set)
    replies: dict[str, int] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    prefix: str = "p0x"
    marks: int = 0

    def mark(self) -> str:
        """A word that no other text has; all of one person begin with `prefix`."""
        self.marks += 1
        return f"{self.prefix}{self.marks}"

    def forget(self) -> None:
        """Nothing must be there any more."""
        for collection in (self.facts, self.replies, self.documents, self.doubtful, self.unfinished):
            collection.clear()


@dataclass(frozen=True)
class Snapshot:
    """What the stores hold of a person at one moment: facts, turns as `Stores.turns` has them, names of documents."""

    facts: frozenset[str]
    turns: dict[str, list[Reply]]
    documents: frozenset[str]


@dataclass(frozen=True)
class Reply:
    """A turn that is shown: where, itself, and how many versions of it there are."""

    conversation: str
    turn: Turn
    versions: int


@dataclass(frozen=True)
class Stores:
    """What is kept of a person, read beside the served process."""

    settings: Settings
    user: str = DEFAULT_USER

    @cached_property
    def engine(self) -> Engine:
        """The database that the page is on."""
        return connect(self.settings.database_url)

    def facts(self) -> list[Fact]:
        """The facts."""
        return Ptkb(self.engine).facts(self.user)

    def turns(self) -> dict[str, list[Reply]]:
        """The turns by the marks of their questions."""
        conversations, replies_by_mark = Conversations(self.engine), dict[str, list[Reply]]()
        for entry in conversations.list(self.user):
            conversation = conversations.get(self.user, entry.id)
            for turn in conversation.turns:
                versions = len(conversation.versions.get(turn.id, (turn.id,)))
                replies_by_mark.setdefault(mark_of(turn.utterance), []).append(Reply(entry.id, turn, versions))
        return replies_by_mark

    def documents(self) -> dict[str, str]:
        """The ids of documents by their names."""
        return {document.name: document.id for document in list_documents(own_library(self.user), self.settings)}

    def snapshot(self) -> Snapshot:
        """All of it."""
        return Snapshot(frozenset(fact.text for fact in self.facts()), self.turns(), frozenset(self.documents()))


class Clicks:
    """What a person does, one click after the other, and what they may count on afterwards."""

    def __init__(
        self,
        visitor: Visitor,
        stores: Stores,
        ledger: Ledger,
        rng: random.Random,
        weights: Sequence[int] = WEIGHTS,
    ) -> None:
        """`weights` say how often each of the `KINDS` comes."""
        self.visitor = visitor
        self._weights = weights
        self._stores, self._ledger, self._rng = stores, ledger, rng
        self._action_by_kind = dict(zip(KINDS, self._acts(), strict=True))
        self.under_way, self.acknowledged, self.mix_ups = "", Counter[str](), list[str]()

    def click(self) -> None:
        """Click once, on something that is there.

        Raises:
            httpx.HTTPError: the server is gone.
            RefusedError: it refused the click.
        """
        [self.under_way] = self._rng.choices(KINDS, self._weights)
        self._action_by_kind[self.under_way]()
        # where there is nothing to change, nothing was acknowledged
        self.acknowledged[self.under_way] += bool(self._ledger.doubtful)
        self._ledger.doubtful.clear()

    def _acts(self) -> Iterator[Callable[[], None]]:
        yield from (self._ask, self._again, self._undo, self._tell, self._edit, self._forget, self._bring, self._drop)

    def _ask(self) -> None:
        mark = self._ledger.mark()
        self._ledger.doubtful.add(mark)
        self._send("composer", "ask", utterance=f"How rich in protein are lentils, {mark}?")
        self._ledger.replies[mark] = 1

    def _again(self) -> None:
        for mark, reply in self._sample_reply():
            self._ledger.doubtful.add(mark)
            self._send("transcript", "again", conversation=reply.conversation, turn=reply.turn.id)
            self._ledger.replies[mark] += 1

    def _undo(self) -> None:
        for mark, reply in self._sample_reply():
            self._ledger.doubtful.add(mark)
            self._send("transcript", "undo", conversation=reply.conversation, turn=reply.turn.id)
            del self._ledger.replies[mark]

    def _tell(self) -> None:
        text = f"I like oats of kind {self._ledger.mark()}."
        self._ledger.doubtful.add(text)
        self._send("facts", "store", text=text)
        self._ledger.facts.add(text)

    def _edit(self) -> None:
        for fact in self._sample_fact():
            text = f"I like rice of kind {self._ledger.mark()}."
            self._ledger.doubtful |= {fact.text, text}
            self._send("facts", "edit", fact=fact.id, text=text)
            self._ledger.facts ^= {fact.text, text}

    def _forget(self) -> None:
        for fact in self._sample_fact():
            self._ledger.doubtful.add(fact.text)
            self._send("facts", "drop", fact=fact.id)
            self._ledger.facts.discard(fact.text)

    def _bring(self) -> None:
        name = f"{self._ledger.mark()}.txt"
        self._ledger.doubtful.add(name)
        text = f"The key {name[:-4]} hangs behind the green door." + self._rng.choice(("", LONG))
        self._check(self.visitor.upload(name, text.encode()))
        self._ledger.documents.add(name)

    def _drop(self) -> None:
        document_ids = self._stores.documents()
        for name in self._rng.sample(sorted(self._ledger.documents & set(document_ids)), 1 if document_ids else 0):
            self._ledger.doubtful.add(name)
            self._send("documents", "drop", document=document_ids[name])
            self._ledger.documents.discard(name)

    def _send(self, piece: str, event: str, **values: str) -> None:
        self._check(self.visitor.send(piece, event, **values))

    def _check(self, reply: EventReply) -> None:
        self.mix_ups += [f"{self._ledger.prefix} got {mark}" for mark in foreign_marks(reply.text, self._ledger.prefix)]

    def _sample_reply(self) -> list[tuple[str, Reply]]:
        turns = self._stores.turns()
        marks = sorted(self._ledger.replies.keys() & turns.keys())
        return [(mark, turns[mark][0]) for mark in marks and self._rng.sample(marks, 1)]

    def _sample_fact(self) -> list[Fact]:
        facts = [fact for fact in self._stores.facts() if fact.text in self._ledger.facts]
        return facts and self._rng.sample(facts, 1)


def foreign_marks(text: str, prefix: str) -> list[str]:
    """The marks in a text that don't begin with a person's own."""
    return sorted({mark for mark in MARK.findall(text) if not mark.startswith(prefix)})


def mark_of(utterance: str) -> str:
    """The mark of a question that `Clicks` asked."""
    return utterance.removesuffix("?").rpartition(" ")[2]


def find_losses(ledger: Ledger, stored: Snapshot) -> list[str]:
    """What was acknowledged and is not as it was, what is there twice, and what came back that had been taken away."""
    turns, uncertain_items = stored.turns, ledger.doubtful | ledger.unfinished
    losses = [f"fact: {text}" for text in (stored.facts ^ ledger.facts) - uncertain_items]
    losses += [f"document: {name}" for name in (stored.documents ^ ledger.documents) - uncertain_items]
    losses += [f"reply: {mark}" for mark in (turns.keys() ^ ledger.replies.keys()) - uncertain_items]
    losses += [f"reply: {mark} is there {len(replies)} times" for mark, replies in turns.items() if len(replies) > 1]
    for mark in (turns.keys() & ledger.replies.keys()) - uncertain_items:
        [reply, *_] = turns[mark]
        if reply.turn.status != "done" or not reply.turn.answer or reply.versions != ledger.replies[mark]:
            state = f"{reply.turn.status}, {reply.versions} of {ledger.replies[mark]} versions"
            losses.append(f"reply: {mark} is {state}")
    return losses


def settle(ledger: Ledger, stored: Snapshot, *, late: bool = False) -> None:
    """Take what was under way as the process was killed for what came of it.

    With `late` it may still come, from a process that lives behind a proxy which gave it up: nothing is expected then.
    """
    if late:
        ledger.unfinished |= ledger.doubtful
    for item in ledger.doubtful:
        for expected_items, stored_items in ((ledger.facts, stored.facts), (ledger.documents, stored.documents)):
            (expected_items.add if item in stored_items else expected_items.discard)(item)
        ledger.replies.pop(item, None)
        if item in stored.turns:
            ledger.unfinished.add(item)
    ledger.doubtful.clear()


def accept(ledger: Ledger, stored: Snapshot) -> None:
    """Expect what is there from now on, so that what was lost once is told once."""
    ledger.facts, ledger.documents = set(stored.facts), set(stored.documents)
    finished_marks = stored.turns.keys() - ledger.unfinished
    ledger.replies = {mark: stored.turns[mark][0].versions for mark in finished_marks & ledger.replies.keys()}
    ledger.unfinished |= finished_marks - ledger.replies.keys()
