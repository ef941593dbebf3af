"""The model panel: what answers now and how fast, what else could, and servers that people add."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from pydantic import SecretStr, ValidationError

from assistant.errors import ModelError
from assistant.llm import backends
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.known import AddedServer, KnownModel
from assistant.llm.load import AUTO
from assistant.llm.rating import Rating, Verdict, rated
from assistant.llm.servers.meet import Found, on_this_computer
from assistant.llm.servers.probe import Probed, absences, probe
from assistant.settings import MIN_CONTEXT, Settings
from assistant.web import render
from assistant.web.switching import Switcher, SwitchPiece
from assistant.web.tab import Tab, Updates
from assistant.web.view import View


@dataclass(frozen=True, slots=True)
class CatalogueCard:
    """A model of the catalogue, whether it is on this computer, and what it would be there, where that is rated."""

    entry: Entry
    known: KnownModel
    is_here: bool
    rating: Rating | None = None


@dataclass(frozen=True, slots=True)
class ServerCard:
    """A model of a server; `absence` says why it doesn't answer, and only what was added can be removed."""

    known: KnownModel
    absence: str
    was_added: bool


@dataclass(frozen=True, slots=True)
class Around:
    """What was found when the menu was opened: how models are rated, servers that were added or found, and a test."""

    ratings: Sequence[Rating] = ()
    servers: Sequence[ServerCard] = ()
    found: Sequence[Found] = ()
    problem: str = ""
    probed: Probed | None = None
    absence: str = ""
    looked: bool = False


class ModelMenu(SwitchPiece):
    """The panel and its handlers."""

    name, title = "model", "Model"

    def __init__(self, view: View, switcher: Switcher, settings: Settings) -> None:
        super().__init__("models", view, switcher, "take", "test", "connect", "remove")
        self._settings, self._known = settings, switcher.models.known

    async def take(self, tab: Tab) -> AsyncIterator[Updates]:
        """Let a model of a server that was found answer: it is added, and switched to."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        known = await asyncio.to_thread(self._known.add, _server(tab))
        tab = Tab(tab.user, tab.session, data={"model": known.id})
        async for updates in self.use(tab):
            yield updates

    async def test(self, tab: Tab) -> AsyncIterator[Updates]:
        """Say what the server of the form can do, or why it can't be used."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        known = self._known.of_server(_server(tab))
        probed = await asyncio.to_thread(lambda: asyncio.run(probe(known.llm)))
        yield await asyncio.to_thread(self._shown, tab.user, await self._around(tab.user, probed))

    async def connect(self, tab: Tab) -> AsyncIterator[Updates]:
        """Keep the server of the form."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        known = await asyncio.to_thread(self._known.add, _server(tab))
        shown = await asyncio.to_thread(self._shown, tab.user, await self._around(tab.user))
        yield {**shown, **self._view.note(f"{known.title} was added.")}

    async def remove(self, tab: Tab) -> AsyncIterator[Updates]:
        """Forget a server that was added, and its key; if it answers now, it does so to the end."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        await asyncio.to_thread(self._known.remove, tab.text("model"))
        yield await asyncio.to_thread(self._shown, tab.user, await self._around(tab.user))

    def _at_first(self, user: str) -> Updates:
        return self._shown(user, Around())

    async def _drawing(self, user: str) -> Callable[[], Updates]:
        """The menu with the servers as they are now; they are asked when it is looked at, not when the page opens."""
        around = await self._around(user)
        return lambda: self._shown(user, around)

    def _shown(self, user: str, around: Around) -> Updates:
        running = self._models.running
        html = render.render(
            "models",
            mark=self._models.mark,
            running=running,
            engine=backends.named(running.engine.backend).TITLE if running else "",
            notice=self._models.notice,
            change=self._models.change,
            fetching=self._models.fetching.state,
            cards=self._cards(around.ratings),
            around=around,
            may=self._switcher.may(user),
        )
        return {self._piece: html}

    async def _around(self, user: str, probed: Probed | None = None) -> Around:
        """The servers, all asked at once; nobody is asked for those who can't choose them."""
        if not await asyncio.to_thread(self._switcher.may, user):
            return Around(await asyncio.to_thread(self._rated), looked=True)
        return await asyncio.to_thread(lambda: asyncio.run(self._asked(probed)))

    def _rated(self) -> Sequence[Rating]:
        running = self._models.running
        return rated(self._settings, running.name if running else "")

    def _cards(self, ratings: Sequence[Rating]) -> list[CatalogueCard]:
        """The catalogue's models: the best for this computer first, then what fits, then the others."""
        catalogue, rating = Catalogue.load(), {one.entry.name: one for one in ratings}
        cards = [
            CatalogueCard(entry, known, catalogue.is_here(entry.name, self._settings), rating.get(entry.name))
            for entry, known in self._known.catalogue()
        ]
        return sorted(cards, key=_place)

    async def _asked(self, probed: Probed | None) -> Around:
        added, problem = list[KnownModel](), ""
        try:
            added = self._known.added()
        except ModelError as error:
            problem = str(error)
        named = self._known.named()
        own = [named] if named.is_served and named.id not in {one.id for one in added} else []
        running = self._models.running
        now = [running.known] if running and running.known.is_served else []
        asked = [*added, *own, *now]
        reasons, found, ratings = await asyncio.gather(
            absences([one.llm for one in asked]), on_this_computer(), asyncio.to_thread(self._rated)
        )
        cards = [
            ServerCard(known, absence, known in added)
            for known, absence in zip(added + own, reasons[: len(added) + len(own)], strict=True)
        ]
        absence = reasons[-1] if now else ""
        return Around(ratings, cards, _new(found, asked), problem, probed, absence, looked=True)


def _place(card: CatalogueCard) -> tuple[bool, int]:
    """Where a model stands in the menu."""
    verdicts = list(Verdict)
    return not (card.rating and card.rating.best), verdicts.index(card.rating.verdict) if card.rating else len(verdicts)


def _new(found: Sequence[Found], asked: Sequence[KnownModel]) -> list[Found]:
    """The servers found, without the models that are known anyway."""
    ids = {known.id for known in asked}
    left = [
        Found(one.kind, one.address, tuple(model for model in one.models if f"{one.address} {model}" not in ids))
        for one in found
    ]
    return [one for one in left if one.models]


def _server(tab: Tab) -> AddedServer:
    """The server that a form or a button names.

    Raises:
        ModelError: something in it can't be.
    """
    context = tab.text("context").strip()
    if context and tab.number("context") < MIN_CONTEXT:
        raise ModelError(
            f"The context is a number of tokens, {MIN_CONTEXT:,} at least; left empty, the server tells it."
        )
    try:
        return AddedServer(
            address=tab.text("address"),
            model=tab.text("model").strip() or AUTO,
            key=SecretStr(tab.text("key").strip()),
            context=int(context) if context else None,
        )
    except ValidationError as error:
        raise ModelError("The name of the model or the key is longer than any; check what was pasted.") from error
