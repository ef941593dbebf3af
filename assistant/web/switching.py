"""Who may change which model answers, and how that goes on: what the model panel and the offered model share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from assistant.errors import SettingsError
from assistant.llm.background_download import DownloadState
from assistant.llm.known_models import KnownModel
from assistant.llm.models import Change, Models, Running
from assistant.web import render
from assistant.web.opening import Opening
from assistant.web.panel import PiecePanel
from assistant.web.tab import Tab, Updates, on_stream
from assistant.web.view import View

PAUSE = 0.3  # seconds between looks at a model that is being loaded


@dataclass(frozen=True)
class Switcher:
    """The models, for those who may change which one answers."""

    models: Models
    may: Callable[[str], bool]

    def check(self, user: str) -> None:
        """See that this user may change it.

        Raises:
            SettingsError: others decide.
        """
        if not self.may(user):
            raise SettingsError("The model is chosen by those whom the setting web.admins names; ask one of them.")

    def switch_to(self, user: str, id_: str) -> None:
        """Begin to load another model.

        Raises:
            SettingsError: others decide.
            ModelError: there is no such model, or another is being loaded.
        """
        self.check(user)
        self.models.switch(id_)

    def halt(self, user: str) -> None:
        """Stop what is being fetched; what has come of it is kept for the next time.

        Raises:
            SettingsError: others decide.
        """
        self.check(user)
        self.models.fetching.stop()

    def offered(self, user: str) -> list[KnownModel]:
        """The models that this user may have answer at once; none where there is but the one that runs."""
        if not self.may(user):
            return []
        ready_models, running = self.models.known.here(), self.models.running
        return ready_models if any(running is None or model.id != running.known.id for model in ready_models) else []

    async def progress_updates(self, show: Callable[[], Updates]) -> AsyncIterator[Updates]:
        """What `show` gives, each time that more of another model is fetched or loaded, until none is."""
        while True:
            last_state = self._state()
            yield await asyncio.to_thread(show)
            while self.models.is_changing and last_state == self._state():
                await asyncio.sleep(PAUSE)
            if last_state == self._state() and not self.models.is_changing:
                return

    def outcome(self, id_: str, view: View) -> Updates:
        """What became of the wish to have this model answer; nothing where it was stopped."""
        change, running = self.models.change, self.models.running
        if change and change.error:
            return {view.pieces.notice: render.notice(change.error)}
        if running and running.known.id == id_:
            return view.note(f"{running.name} answers from the next message on.")
        return {}

    def _state(self) -> tuple[DownloadState, Change | None, Running | None]:
        return self.models.fetching.state, self.models.change, self.models.running


class SwitchPiece(PiecePanel, ABC):
    """A piece of the page that tells which model answers and lets it be another one."""

    def __init__(self, name: str, view: View, switcher: Switcher, *events: str) -> None:
        """`events` are handled beside those that every such piece has."""
        super().__init__(view, name, "see", "use", "halt", *events)
        self._switcher, self._models = switcher, switcher.models

    def wire(self, opening: Opening) -> None:
        """Listen; the piece is filled when the page opens, and looked at anew when `Models.mark` is another one."""
        for event in self._events:
            on_stream(self._piece, event, getattr(self, event), [self._piece], self._view.pieces.notice)

        opening.fill([self._piece], self._at_first)

    async def see(self, tab: Tab) -> AsyncIterator[Updates]:
        """Show the piece, and what is being fetched or loaded to its end."""
        async for updates in self._switcher.progress_updates(await self._drawing(tab.user)):
            yield updates

    async def use(self, tab: Tab) -> AsyncIterator[Updates]:
        """Let another model answer, from the message on that is sent once it is fetched and loaded."""
        await asyncio.to_thread(self._switcher.switch_to, tab.user, tab.text("model"))
        async for updates in self.see(tab):
            yield updates
        if outcome := self._switcher.outcome(tab.text("model"), self._view):
            yield outcome

    async def halt(self, tab: Tab) -> AsyncIterator[Updates]:
        """Stop what is being fetched; what has come of it is kept for the next time."""
        await asyncio.to_thread(self._switcher.halt, tab.user)
        async for updates in self.see(tab):
            yield updates

    @abstractmethod
    def _at_first(self, user: str) -> Updates:
        """What this user is shown when the page opens."""

    @abstractmethod
    async def _drawing(self, user: str) -> Callable[[], Updates]:
        """What draws the piece for this user, as often as something changes."""
