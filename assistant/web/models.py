"""The model panel: what answers now and how fast, what else could, and servers that people add."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import SecretStr, ValidationError

from assistant.errors import ModelError
from assistant.llm import backends
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.known_models import AddedServer, KnownModel
from assistant.llm.load import AUTO
from assistant.llm.rating import Rating, Verdict, rated
from assistant.llm.servers.discovery import Found, on_this_computer
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
    """What was found when the menu was opened: how models are rated, what servers say, others, and a test.

    `absences` tells by the id of a server's model why it doesn't answer; "" where it does.
    """

    ratings: Sequence[Rating] = ()
    absences: Mapping[str, str] = field(default_factory=dict)
    found: Sequence[Found] = ()
    probed: Probed | None = None
    looked: bool = False


@dataclass(frozen=True, slots=True)
class Servers:
    """The part of the menu for those who may choose: the servers known now, and `problem` if they can't be read."""

    cards: Sequence[ServerCard] = ()
    found: Sequence[Found] = ()
    problem: str = ""


class ModelMenu(SwitchPiece):
    """The panel and its handlers; `judges` tells, in a sentence, of smaller ones that stand in for others."""

    name, title = "model", "Model"

    def __init__(self, view: View, switcher: Switcher, settings: Settings, judges: Callable[[], str] = str) -> None:
        super().__init__("models", view, switcher, "take", "test", "connect", "remove")
        self._settings, self._known, self._judges = settings, switcher.models.known, judges

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
        known = await asyncio.to_thread(lambda: self._known.add(asyncio.run(self._known.titled(_server(tab)))))
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
        running, may = self._models.running, self._switcher.may(user)
        html = render.render(
            "models",
            mark=self._models.mark,
            running=running,
            engine=backends.named(running.engine.backend).TITLE if running else "",
            notice=self._models.notice,
            judges=self._judges(),
            change=self._models.change,
            fetching=self._models.fetching.state,
            cards=self._cards(around.ratings),
            around=around,
            absence=around.absences.get(running.known.id, "") if running else "",
            servers=self._servers(around) if may else Servers(),
            may=may,
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
        """Ask every server that is known, once."""
        known = {one.id: one for one in (*self._added()[0], *self._elsewhere())}
        reasons, found, ratings = await asyncio.gather(
            absences([one.llm for one in known.values()]), on_this_computer(), asyncio.to_thread(self._rated)
        )
        return Around(ratings, dict(zip(known, reasons, strict=True)), found, probed, looked=True)

    def _servers(self, around: Around) -> Servers:
        """The servers as they are known now: one may have been added or removed since the others were asked."""
        added, problem = self._added()
        elsewhere = [one for one in self._elsewhere() if one.id not in {known.id for known in added}]
        named = [one for one in elsewhere if one.id == self._known.named().id]
        cards = [ServerCard(one, around.absences.get(one.id, ""), one in added) for one in (*added, *named)]
        return Servers(cards if around.looked else [], _new(around.found, [*added, *elsewhere]), problem)

    def _added(self) -> tuple[list[KnownModel], str]:
        """The servers that people added, or why they can't be told."""
        try:
            return self._known.added(), ""
        except ModelError as error:
            return [], str(error)

    def _elsewhere(self) -> list[KnownModel]:
        """The servers that nobody needs to have added: what the settings name, and what answers now."""
        running = self._models.running
        known = [self._known.named(), *([running.known] if running else [])]
        return [one for one in known if one.is_served]


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
