"""The pieces of the page, and what each shows for a tab."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from assistant.errors import StoreError
from assistant.llm.known_models import KnownModel
from assistant.protocols import Embedder
from assistant.runs import Place, Run, Runs
from assistant.store.conversations import Conversation, Conversations, is_temporary
from assistant.types import Fact, Turn, new_id, now
from assistant.web import render
from assistant.web.live import Live
from assistant.web.tab import Tab, Updates
from ptkb.extract import outdated_facts
from ptkb.fields import fields_of
from ptkb.store import Ptkb

EXAMPLES = (
    "What is a good diet?",
    "Which languages are spoken in Switzerland?",
    "How can I sleep better before an exam?",
    "What should I check before I travel abroad?",
)
EMPTY = Conversation("", "", now(), now())


@dataclass(frozen=True)
class Pieces:
    """The live pieces of the page. Each stands where it is placed."""

    conversations: Live
    transcript: Live
    answering: Live
    composer: Live
    notice: Live
    sources: Live
    facts: Live
    documents: Live
    download: Live
    viewer: Live


@dataclass(frozen=True)
class View:
    """Renders pieces from what is stored and running. Whatever is shown was asked for in the user's name.

    `embedder` gives what tells the fields of facts, None while that is not loaded; `models` what a user may have answer
    again.
    """

    pieces: Pieces
    conversations: Conversations
    ptkb: Ptkb
    runs: Runs
    embedder: Callable[[], Embedder | None] = lambda: None
    models: Callable[[str], Sequence[KnownModel]] = lambda _user: ()

    def all(self, tab: Tab) -> Updates:
        """The tab's conversation, and the list of conversations."""
        return {**self.opened(tab), **self.sidebar(tab)}

    def opened(self, tab: Tab) -> Updates:
        """Everything that belongs to the tab's conversation.

        Looked at is the reply that is being written, else the one that the tab looked at, else the newest.
        """
        conversation, run = self.under_way(tab)
        newest = conversation.turns[-1] if conversation.turns else None
        return {
            **self.talk(tab, conversation, run),
            **self.panel(tab, run.turn if run else self.looked(tab) or newest),
        }

    def under_way(self, tab: Tab) -> tuple[Conversation, Run | None]:
        """The tab's conversation, and the answer that is being written there, which may begin or end meanwhile."""
        run = self.runs.of(tab.user, tab.conversation)
        conversation = self.conversation(tab)
        return conversation, run or self.runs.of(tab.user, tab.conversation)

    def talk(self, tab: Tab, conversation: Conversation, run: Run | None) -> Updates:
        """The transcript, and the answer that is being written."""
        return {
            **self.transcript(tab, conversation, run, run.place if run else None),
            self.pieces.answering: render.running(conversation.id, run) if run else "",
        }

    def transcript(self, tab: Tab, conversation: Conversation, run: Run | None, place: Place | None) -> Updates:
        """The conversation without the answer that is being written, with `place` open for it."""
        facts, models = self.ptkb.facts(tab.user), self.models(tab.user)
        html = render.transcript(_settled(conversation, run), facts, place, models)
        if not conversation.turns and not run:
            html += self._welcome(is_temporary(tab.conversation))
        return {self.pieces.transcript: html}

    def sidebar(self, tab: Tab) -> Updates:
        """The list of conversations, as searched for."""
        items = self.conversations.list(tab.user, tab.search)
        temporary = is_temporary(tab.conversation)
        html = render.render(
            "conversations", items=items, current=tab.conversation, search=tab.search, temporary=temporary
        )
        return {self.pieces.conversations: html}

    def panel(self, tab: Tab, turn: Turn | None, opened: bool = False) -> Updates:
        """The sources of a turn, also what is folded where it was `opened`, and the facts as it saw them."""
        return {self.pieces.sources: render.render("sources", turn=turn, opened=opened), **self.facts(tab, turn)}

    def facts(self, tab: Tab, turn: Turn | None) -> Updates:
        """The user's facts, with the relevance that each had in `turn`."""
        facts, relevance = self._in_fields(tab.user), {fact.id: fact for fact in turn.facts} if turn else {}
        spots = self.conversations.message_links(tab.user, (fact.source for fact in facts))
        last_uses = self.conversations.last_uses(tab.user)
        newer_by_id = outdated_facts(facts)
        html = render.render(
            "facts", facts=facts, relevance=relevance, told=spots, used=last_uses, outdated=newer_by_id
        )
        return {self.pieces.facts: html}

    def _in_fields(self, user: str) -> list[Fact]:
        """The user's facts. Of those that are new it is told, once, what they are about."""
        facts, embedder = self.ptkb.facts(user), self.embedder()
        new_facts = [fact for fact in facts if not fact.field]
        if not new_facts or embedder is None:
            return facts
        fields = fields_of([fact.text for fact in new_facts], embedder)
        fields_by_id = {fact.id: field for fact, field in zip(new_facts, fields, strict=True)}
        self.ptkb.set_fields(user, fields_by_id)
        return [fact.in_field(fields_by_id.get(fact.id, fact.field)) for fact in facts]

    def box(self, draft: str) -> Updates:
        """The box, with text given back to the user."""
        return {self.pieces.composer: render.render("composer", draft=draft, nonce=new_id())}

    def save(self, name: str, text: str) -> Updates:
        """A file for the user to keep."""
        return {self.pieces.download: render.render("download", name=name, text=text, nonce=new_id())}

    def note(self, text: str) -> Updates:
        """A short word that something was done."""
        return {self.pieces.notice: render.notice(text, "note")}

    def conversation(self, tab: Tab) -> Conversation:
        """The conversation that the tab shows; an empty one before its first message."""
        return self.conversations.get(tab.user, tab.conversation) if tab.conversation else EMPTY

    def turn(self, tab: Tab, turn_id: str) -> Turn | None:
        """A turn of the tab's conversation that is shown, compared or being written."""
        run = self.runs.of(tab.user, tab.conversation)
        if run and turn_id in run.turns:
            return run.turns[turn_id]
        conversation = self.conversation(tab)
        turns = (*conversation.turns, *chain.from_iterable(conversation.compared.values()))
        return next((turn for turn in turns if turn.id == turn_id), None)

    def looked(self, tab: Tab) -> Turn | None:
        """The turn whose sources the tab shows."""
        try:
            return self.turn(tab, tab.looked) if tab.looked else None
        except StoreError:
            return None

    def _welcome(self, temporary: bool) -> str:
        return render.render("welcome", examples=EXAMPLES, temporary=temporary)


def _settled(conversation: Conversation, run: Run | None) -> Conversation:
    """The conversation without what is being written, which is shown apart; what nobody writes on has stopped."""
    running_turns = run.turns if run else {}

    def settle(turns: Iterable[Turn]) -> tuple[Turn, ...]:
        other_turns = (turn for turn in turns if turn.id not in running_turns)
        return tuple(replace(turn, status="stopped") if turn.status == "running" else turn for turn in other_turns)

    compared = {turn_id: settle(sides) for turn_id, sides in conversation.compared.items()}
    versions = {
        turn_id: tuple(version for version in ids if version not in running_turns)
        for turn_id, ids in conversation.versions.items()
    }
    return replace(conversation, turns=settle(conversation.turns), compared=compared, versions=versions)
