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
from assistant.llm.rating import Rating, Verdict, model_ratings
from assistant.llm.servers.discovery import LocalServer, local_servers
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
class MenuSurvey:
    """What was found when the menu was opened: how models are rated, what servers say, others, and a test.

    `absences` tells by the id of a server's model why it doesn't answer; "" where it does.
    """

    ratings: Sequence[Rating] = ()
    absences: Mapping[str, str] = field(default_factory=dict)
    found: Sequence[LocalServer] = ()
    probed: Probed | None = None
    looked: bool = False


@dataclass(frozen=True, slots=True)
class Servers:
    """The part of the menu for those who may choose: the servers known now, and `problem` if they can't be read."""

    cards: Sequence[ServerCard] = ()
    found: Sequence[LocalServer] = ()
    problem: str = ""


class ModelMenu(SwitchPiece):
    """The panel and its handlers; `judges` tells, in a sentence, of smaller ones that stand in for others."""

    name, title = "model", "Model"

    def __init__(self, view: View, switcher: Switcher, settings: Settings, judges: Callable[[], str] = str) -> None:
        super().__init__("models", view, switcher, "take", "test", "connect", "remove")
        self._settings, self._known_models, self._judges = settings, switcher.models.known, judges

    async def take(self, tab: Tab) -> AsyncIterator[Updates]:
        """Let a model of a server that was found answer: it is added, and switched to."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        model = await asyncio.to_thread(self._known_models.add, _server(tab))
        tab = Tab(tab.user, tab.session, data={"model": model.id})
        async for updates in self.use(tab):
            yield updates

    async def test(self, tab: Tab) -> AsyncIterator[Updates]:
        """Say what the server of the form can do, or why it can't be used."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        model = self._known_models.of_server(_server(tab))
        probed = await asyncio.to_thread(lambda: asyncio.run(probe(model.llm)))
        yield await asyncio.to_thread(self._updates, tab.user, await self._survey(tab.user, probed))

    async def connect(self, tab: Tab) -> AsyncIterator[Updates]:
        """Keep the server of the form."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        model = await asyncio.to_thread(
            lambda: self._known_models.add(asyncio.run(self._known_models.titled(_server(tab))))
        )
        updates = await asyncio.to_thread(self._updates, tab.user, await self._survey(tab.user))
        yield {**updates, **self._view.note(f"{model.title} was added.")}

    async def remove(self, tab: Tab) -> AsyncIterator[Updates]:
        """Forget a server that was added, and its key; if it answers now, it does so to the end."""
        await asyncio.to_thread(self._switcher.check, tab.user)
        await asyncio.to_thread(self._known_models.remove, tab.text("model"))
        yield await asyncio.to_thread(self._updates, tab.user, await self._survey(tab.user))

    def _at_first(self, user: str) -> Updates:
        return self._updates(user, MenuSurvey())

    async def _drawing(self, user: str) -> Callable[[], Updates]:
        """The menu with the servers as they are now; they are asked when it is looked at, not when the page opens."""
        survey = await self._survey(user)
        return lambda: self._updates(user, survey)

    def _updates(self, user: str, survey: MenuSurvey) -> Updates:
        running, may_switch = self._models.running, self._switcher.may(user)
        html = render.render(
            "models",
            mark=self._models.mark,
            running=running,
            engine=backends.named(running.engine.backend).TITLE if running else "",
            notice=self._models.notice,
            judges=self._judges(),
            change=self._models.change,
            fetching=self._models.fetching.state,
            cards=self._cards(survey.ratings),
            around=survey,
            absence=survey.absences.get(running.known.id, "") if running else "",
            servers=self._servers(survey) if may_switch else Servers(),
            may=may_switch,
        )
        return {self._piece: html}

    async def _survey(self, user: str, probed: Probed | None = None) -> MenuSurvey:
        """The servers, all asked at once; nobody is asked for those who can't choose them."""
        if not await asyncio.to_thread(self._switcher.may, user):
            return MenuSurvey(await asyncio.to_thread(self._rated), looked=True)
        return await asyncio.to_thread(lambda: asyncio.run(self._ask_servers(probed)))

    def _rated(self) -> Sequence[Rating]:
        running = self._models.running
        return model_ratings(self._settings, running.name if running else "")

    def _cards(self, ratings: Sequence[Rating]) -> list[CatalogueCard]:
        """The catalogue's models: the best for this computer first, then what fits, then the others."""
        catalogue, ratings_by_name = Catalogue.load(), {rating.entry.name: rating for rating in ratings}
        cards = [
            CatalogueCard(
                entry, known_model, catalogue.is_here(entry.name, self._settings), ratings_by_name.get(entry.name)
            )
            for entry, known_model in self._known_models.catalogue()
        ]
        return sorted(cards, key=_menu_order)

    async def _ask_servers(self, probed: Probed | None) -> MenuSurvey:
        """Ask every server that is known, once."""
        models_by_id = {model.id: model for model in (*self._added()[0], *self._elsewhere())}
        reasons, discovered, ratings = await asyncio.gather(
            absences([model.llm for model in models_by_id.values()]), local_servers(), asyncio.to_thread(self._rated)
        )
        return MenuSurvey(ratings, dict(zip(models_by_id, reasons, strict=True)), discovered, probed, looked=True)

    def _servers(self, survey: MenuSurvey) -> Servers:
        """The servers as they are known now: one may have been added or removed since the others were asked."""
        added, problem = self._added()
        elsewhere = [model for model in self._elsewhere() if model.id not in {known_model.id for known_model in added}]
        named_models = [model for model in elsewhere if model.id == self._known_models.named().id]
        cards = [
            ServerCard(model, survey.absences.get(model.id, ""), model in added) for model in (*added, *named_models)
        ]
        return Servers(cards if survey.looked else [], _unlisted_servers(survey.found, [*added, *elsewhere]), problem)

    def _added(self) -> tuple[list[KnownModel], str]:
        """The servers that people added, or why they can't be told."""
        try:
            return self._known_models.added(), ""
        except ModelError as error:
            return [], str(error)

    def _elsewhere(self) -> list[KnownModel]:
        """The servers that nobody needs to have added: what the settings name, and what answers now."""
        running = self._models.running
        models = [self._known_models.named(), *([running.known] if running else [])]
        return [model for model in models if model.is_served]


def _menu_order(card: CatalogueCard) -> tuple[bool, int]:
    """Where a model stands in the menu."""
    verdicts = list(Verdict)
    return not (card.rating and card.rating.best), verdicts.index(card.rating.verdict) if card.rating else len(verdicts)


def _unlisted_servers(discovered: Sequence[LocalServer], known_models: Sequence[KnownModel]) -> list[LocalServer]:
    """The servers found, without the models that are known anyway."""
    ids = {model.id for model in known_models}
    remaining = [
        LocalServer(
            server.kind,
            server.address,
            tuple(model for model in server.models if f"{server.address} {model}" not in ids),
        )
        for server in discovered
    ]
    return [server for server in remaining if server.models]


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
