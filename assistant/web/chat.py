"""What happens in the middle of the page: asking, watching the answer, stopping it, judging it, taking it back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import cast, get_args

from assistant.chat import Chat
from assistant.errors import SequiturError, SettingsError, StoreError
from assistant.runs import END, Place, Run, watch
from assistant.settings import IfUnanswerable
from assistant.store.conversations import Conversation, Feedback
from assistant.store.shared import BUSY
from assistant.types import Choices, Turn, Work
from assistant.web import remembering, render
from assistant.web.live import Live
from assistant.web.tab import Tab, Updates, on, on_stream
from assistant.web.view import View
from assistant.web.watchers import Watchers
from assistant.wording.views import unsourced_kind

NOT_STORED = "This reply could not be stored; copy what you need of it before you go on."


class ChatHandlers:
    """The handlers. Each acts in the name of the event's user, so that nobody's ids but their own are found."""

    def __init__(
        self,
        view: View,
        chat: Chat,
        choices: Callable[[str], Choices],
        switch: Callable[[str, str], None],
        hears: Callable[[str], bool] = lambda _session: True,
    ) -> None:
        """`switch` lets another model answer, by its id, in a user's name; `hears` tells whether a tab is listening."""
        self._view, self._chat, self._choices, self._switch = view, chat, choices, switch
        self._conversations, self._runs, self._ptkb = view.conversations, view.runs, view.ptkb
        self._watchers, self._hears = Watchers(), hears

    def wire(self) -> None:
        """Listen."""
        pieces, outputs = self._view.pieces, self.shown
        on_stream(pieces.composer, "ask", self.ask, [*outputs, pieces.composer], pieces.notice)
        on_stream(pieces.transcript, "again", self.again, outputs, pieces.notice)
        on_stream(pieces.transcript, "compare", self.compare, outputs, pieces.notice)
        on(pieces.transcript, "choose", self.choose, outputs, pieces.notice)
        on(pieces.composer, "stop", self.stop, [], pieces.notice)
        on(pieces.transcript, "undo", self.undo, [*outputs, pieces.composer], pieces.notice)
        on(pieces.transcript, "judge", self.judge, outputs, pieces.notice)
        on(pieces.transcript, "remember", self.remember, outputs, pieces.notice)
        on(pieces.transcript, "forget", self.forget, outputs, pieces.notice)
        on(pieces.transcript, "look", self.look, outputs, pieces.notice)
        on(pieces.answering, "look", self.look, outputs, pieces.notice)

    @property
    def shown(self) -> list[Live]:
        """The pieces that a reply shows in."""
        pieces = self._view.pieces
        return [pieces.transcript, pieces.answering, pieces.conversations, pieces.sources, pieces.facts]

    async def ask(self, tab: Tab) -> AsyncIterator[Updates]:
        """Answer a message. One that can't be answered goes back into the box, with a banner that says why."""
        utterance = tab.text("utterance")
        try:
            tab, run = await asyncio.to_thread(self._begin, tab, partial(self._answer, utterance))
        except SequiturError as error:
            yield {**self._view.box(utterance), self._view.pieces.notice: render.notice(str(error))}
            return
        async for updates in self._show_new(tab, run):
            yield updates

    async def work(self, tab: Tab, work: Work) -> AsyncIterator[Updates]:
        """Work on whole documents; the reply is one of the conversation."""
        tab, run = await asyncio.to_thread(self._begin, tab, partial(self._do_work, work))
        async for updates in self._show_new(tab, run):
            yield updates

    async def again(self, tab: Tab) -> AsyncIterator[Updates]:
        """Answer an earlier message anew: by another strategy or model, or in spite of its passages, as picked."""
        turn_id, model = tab.text("turn"), tab.text("model")
        choices = picked(tab, await asyncio.to_thread(self._choices, tab.user))

        def answering(stop: Event) -> Iterator[Turn]:
            if model:
                self._switch(tab.user, model)
            return self._chat.again(tab.user, tab.conversation, turn_id, choices, stop, model)

        run = await asyncio.to_thread(self._runs.start, tab.user, tab.conversation, answering, Place(turn_id))
        async for updates in self._show_new(tab, run):
            yield updates

    async def compare(self, tab: Tab) -> AsyncIterator[Updates]:
        """Answer an earlier message anew by two strategies, shown side by side."""
        turn_id, choices = tab.text("turn"), await asyncio.to_thread(self._choices, tab.user)
        pair = (tab.text("first"), tab.text("second"))

        def answering(stop: Event) -> Iterator[Turn]:
            return self._chat.compare(tab.user, tab.conversation, turn_id, pair, choices, stop)

        run = await asyncio.to_thread(self._runs.start, tab.user, tab.conversation, answering, Place(turn_id, pair))
        async for updates in self._show_new(tab, run):
            yield updates

    def choose(self, tab: Tab) -> Updates:
        """Show another version of a reply, or keep one of those that were compared.

        Raises:
            StoreError: another version of this reply is being written.
        """
        turn_id, run = tab.text("turn"), self._runs.of(tab.user, tab.conversation)
        if run and _same_reply(self._view.conversation(tab), turn_id, run):
            raise StoreError(BUSY)
        self._conversations.choose(tab.user, tab.conversation, turn_id)
        return {**self.replies(tab), **self._panel(tab)}

    async def show(self, tab: Tab, run: Run | None) -> AsyncIterator[Updates]:
        """Show the tab's conversation, and what is being written in it to its end, unless the tab turns elsewhere."""
        is_current = self._watchers.enter(tab.session, run)
        updates = await asyncio.to_thread(self._view.all, tab)
        if not is_current():
            return
        yield updates
        if run:
            async for updates in self._follow(tab, run):
                if not is_current():
                    return
                yield updates

    def leave(self, tab: Tab) -> None:
        """Let the tab watch nothing any more."""
        self._watchers.leave(tab.session)

    async def _show_new(self, tab: Tab, run: Run) -> AsyncIterator[Updates]:
        """As `show`, for the event that began the run; a banner that is there goes at once, and no later one."""
        cleared: Updates = {self._view.pieces.notice: ""}
        async for updates in self.show(tab, run):
            yield {**cleared, **updates}
            cleared = {}

    async def _follow(self, tab: Tab, run: Run) -> AsyncIterator[Updates]:
        """A run as it goes on, then what is stored of it.

        Its sources are sent when they change, unless those of another reply were asked for meanwhile.
        """
        pieces, last_sources = self._view.pieces, None
        async for turn in watch(run, lambda: self._hears(tab.session)):
            updates: Updates = {pieces.answering: render.running(tab.conversation, run)}
            is_looked_at = self._watchers.looked(tab.session) in {"", turn.id}
            if is_looked_at and ((turn.passages, unsourced_kind(turn)) != last_sources or turn.citations):
                last_sources = turn.passages, unsourced_kind(turn)
                updates |= {pieces.sources: render.render("sources", turn=turn)}
            yield updates
        yield await asyncio.to_thread(self._finished, tab, run)

    def stop(self, tab: Tab) -> Updates:
        """Stop the answer being written."""
        self._runs.stop(tab.user, tab.conversation)
        return {}

    def undo(self, tab: Tab) -> Updates:
        """Take the last message back: the turn goes, its text returns to the box, and what it told if that was picked.

        Raises:
            StoreError: an answer is being written, which goes on from this turn, or another one did.
        """
        if self._runs.busy(tab.user, tab.conversation):
            raise StoreError(BUSY)
        turn = self._turn_of(tab)
        conversation = self._conversations.get(tab.user, tab.conversation)
        if conversation.position_of(turn.id) != len(conversation.turns) - 1:
            raise StoreError("The conversation went on after this message; reload the page to see how.")
        if tab.text("facts") == "forget":
            versions = self._conversations.versions(tab.user, tab.conversation, turn.id)
            remembering.take_back(self._ptkb, tab.user, versions)
        self._conversations.remove_turn(tab.user, tab.conversation, turn.id)
        return {**self._view.all(tab), **self._view.box(_as_typed(turn, conversation.turns[:-1]))}

    def judge(self, tab: Tab) -> Updates:
        """Keep a thumb up or down, or none."""
        value = min(max(tab.number("value"), -1), 1)
        self._conversations.feedback(tab.user, tab.text("turn"), cast("Feedback", value))
        return self.replies(tab)

    def look(self, tab: Tab) -> Updates:
        """Show the sources of a turn, all that was found, and the facts as it saw them."""
        return self._panel(tab, opened=True)

    def remember(self, tab: Tab) -> Updates:
        """Store a fact that was offered."""
        note = remembering.remember(self._ptkb, tab.user, self._turn_of(tab), tab.number("place"))
        return self._fact_changed(tab, note)

    def forget(self, tab: Tab) -> Updates:
        """Delete a fact that a reply lists."""
        remembering.forget(self._ptkb, self._conversations, tab.user, tab.text("fact"))
        return self._fact_changed(tab, "Forgotten.")

    def _fact_changed(self, tab: Tab, note: str) -> Updates:
        """The replies and the facts after a fact has changed, and a word that it has."""
        return {**self.replies(tab), **self._view.facts(tab, self._view.looked(tab)), **self._view.note(note)}

    def _panel(self, tab: Tab, opened: bool = False) -> Updates:
        turn = self._turn_of(tab)
        self._watchers.look(tab.session, turn.id)
        return self._view.panel(tab, turn, opened)

    def _answer(self, utterance: str, tab: Tab, choices: Choices, stop: Event) -> Iterator[Turn]:
        return self._chat.ask(tab.user, tab.conversation, utterance, choices, stop)

    def _do_work(self, work: Work, tab: Tab, choices: Choices, stop: Event) -> Iterator[Turn]:
        return self._chat.work(tab.user, tab.conversation, work, choices, stop)

    def _begin(self, tab: Tab, replying: Callable[[Tab, Choices, Event], Iterator[Turn]]) -> tuple[Tab, Run]:
        """Start the answer; a first message makes the conversation, which goes again if there is no answer to it."""
        choices, is_new = self._choices(tab.user), not tab.conversation
        if is_new:
            tab = replace(tab, conversation=self._conversations.new(tab.user).id)
        try:
            run = self._runs.start(tab.user, tab.conversation, lambda stop: replying(tab, choices, stop))
        except SequiturError:
            if is_new:
                self._conversations.delete(tab.user, tab.conversation)
            raise
        return tab, run

    def replies(self, tab: Tab) -> Updates:
        """The replies, after one of them changed.

        What is being written comes to those who follow it by itself; to others it must not come at all, since nothing
        would tell them of its end.
        """
        conversation, run = self._view.under_way(tab)
        if not run:
            return self._view.talk(tab, conversation, None)
        place = run.place if self._watchers.follows(tab.session, run) else END
        return self._view.transcript(tab, conversation, run, place)

    def _finished(self, tab: Tab, run: Run) -> Updates:
        """What is stored of a run that is over."""
        try:
            return self._stored(tab, run)
        except StoreError as error:  # the conversation was deleted meanwhile
            empty = self._view.all(replace(tab, conversation=""))
            return {**empty, self._view.pieces.notice: render.notice(str(error))}

    def _stored(self, tab: Tab, run: Run) -> Updates:
        """The conversation after a run; an answer that could not be stored stays on the page as it is.

        The list of conversations is left alone: it changed as the run began, and may have been searched since.
        """
        pieces, turn = self._view.pieces, run.turn
        tab = replace(tab, looked=self._watchers.looked(tab.session) or turn.id)
        updates = self._view.opened(tab)
        if run.place.of:
            return updates | ({pieces.notice: render.notice(turn.error)} if turn.error else {})
        conversation = self._view.conversation(tab)
        if any(_complete(stored, turn) for stored in conversation.turns):
            return updates
        return {
            **updates,
            **self._view.talk(tab, conversation, run),
            **(self._view.panel(tab, turn) if tab.looked == turn.id else {}),
            pieces.notice: render.notice(NOT_STORED),
        }

    def _turn_of(self, tab: Tab) -> Turn:
        turn = self._view.turn(tab, tab.text("turn"))
        if turn is None:
            raise StoreError("This reply is no longer part of the conversation; reload the page.")
        return turn


def _as_typed(turn: Turn, earlier: Sequence[Turn]) -> str:
    """The message of a turn as it was typed: with the collection that it named; "" for work on documents.

    A collection that messages before it were asked of needs no name: the message is asked of it again.
    """
    if turn.work:
        return ""
    last_collection = next((one.choices.collection for one in reversed(earlier) if one.work is None), "")
    collection = turn.choices.collection
    return f"{collection} {turn.utterance}" if collection not in {"", last_collection} else turn.utterance


def _complete(stored: Turn, turn: Turn) -> bool:
    """Whether this is the turn, stored to its end and not just as it began."""
    return (stored.id, stored.status, stored.answer) == (turn.id, turn.status, turn.answer)


def _same_reply(conversation: Conversation, turn_id: str, run: Run) -> bool:
    """Whether the run writes another version of the reply that this turn is a version of."""
    position = conversation.position_of(turn_id)
    return position >= 0 and position == conversation.position_of(run.place.of)


def picked(tab: Tab, choices: Choices) -> Choices:
    """A user's choices, but for what the event picks instead.

    Raises:
        SettingsError: what should happen where no passage answers is nothing that can happen.
    """
    strategy, if_unanswerable = tab.text("strategy"), tab.text("below")
    if if_unanswerable not in {"", *get_args(IfUnanswerable)}:
        raise SettingsError("This can't be chosen any more; reload the page to see what can.")
    return replace(
        choices, strategy=strategy or choices.strategy, below=cast("IfUnanswerable", if_unanswerable or choices.below)
    )
