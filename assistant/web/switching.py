"""Who may change which model answers, and how that goes on: what the model panel and the offered model share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from assistant.errors import SettingsError
from assistant.llm.fetching import State
from assistant.llm.known import KnownModel
from assistant.llm.models import Change, Models, Running
from assistant.web import render
from assistant.web.tab import Updates
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

    def to(self, user: str, id_: str) -> None:
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
        here, running = self.models.known.here(), self.models.running
        return here if any(running is None or known.id != running.known.id for known in here) else []

    async def followed(self, show: Callable[[], Updates]) -> AsyncIterator[Updates]:
        """What `show` gives, each time that more of another model is fetched or loaded, until none is."""
        while True:
            seen = self._coming()
            yield await asyncio.to_thread(show)
            while self.models.is_changing and seen == self._coming():
                await asyncio.sleep(PAUSE)
            if seen == self._coming() and not self.models.is_changing:
                return

    def outcome(self, id_: str, view: View) -> Updates:
        """What became of the wish to have this model answer; nothing where it was stopped."""
        change, running = self.models.change, self.models.running
        if change and change.error:
            return {view.pieces.notice: render.notice(change.error)}
        if running and running.known.id == id_:
            return view.note(f"{running.name} answers from the next message on.")
        return {}

    def _coming(self) -> tuple[State, Change | None, Running | None]:
        return self.models.fetching.state, self.models.change, self.models.running
