"""The page: its pieces, where they stand, and who listens to what they send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol

import gradio as gr

from assistant.api import completions
from assistant.chat import Chat
from assistant.llm.models import Models
from assistant.parts import LoadingStage
from assistant.protocols import Embedder
from assistant.runs import Runs
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.types import Choices, new_id
from assistant.upkeep.accounts import Accounts
from assistant.web import render
from assistant.web.account import AccountPanel
from assistant.web.chat import ChatHandlers
from assistant.web.choices import ChoicePanel, UserChoices
from assistant.web.collected import CollectionPanel
from assistant.web.facts import FactPanel
from assistant.web.folder import FollowedFolder
from assistant.web.library import DocumentPanel, OwnDocuments
from assistant.web.live import Live, live, place
from assistant.web.metrics import Metrics
from assistant.web.models import ModelMenu
from assistant.web.offer import OfferLine
from assistant.web.opening import Opening
from assistant.web.panel import Panel
from assistant.web.sidebar import Sidebar
from assistant.web.sources import SourcePanel
from assistant.web.streams import Streams
from assistant.web.switching import Switcher
from assistant.web.tab import QUIET, Updates
from assistant.web.tokens import TokenPanel
from assistant.web.usage import UsagePanel
from assistant.web.view import Pieces, View
from assistant.web.whole import WholeWork
from ptkb.store import Ptkb

NO_VALUE = "This is nothing that the page could have sent; reload it, and try again."


class Loading(completions.Loading, Protocol):
    """What is still being made ready, as `assistant.parts.Loader` tells it."""

    @property
    def notice(self) -> str:
        """What a person should know though everything works, or ""."""
        ...

    @property
    def judges(self) -> str:
        """That smaller judges stand in for larger ones, and why, or ""."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """Sentence-BERT, as soon as it is there."""
        ...

    def stages(self) -> tuple[LoadingStage, ...]:
        """The stages, in order."""
        ...

    def prepare(self, user: str, choices: Choices) -> str:
        """Begin to make what these choices need and is not there; the sentence that tells so, or ""."""
        ...


@dataclass(frozen=True)
class House:
    """What the page is built on. `may_switch` says who chooses the model that answers, and sees what all use.

    `followed` is the folder of documents that is followed, if any may be; `streams` tells which tabs are listening.
    """

    settings: Settings
    chat: Chat
    conversations: Conversations
    ptkb: Ptkb
    documents: OwnDocuments
    loading: Loading
    runs: Runs
    tokens: AccessTokens
    accounts: Accounts
    models: Models
    may_switch: Callable[[str], bool]
    usage: Usage
    metrics: Metrics = field(default_factory=Metrics)
    followed: FollowedFolder | None = None
    streams: Streams = field(default_factory=Streams)


class Page(gr.Blocks):
    """Gradio's, which would answer values that no component sends without a sentence, and fill the log with them."""

    async def preprocess_data(self, *args: Any, **kwargs: Any) -> Any:
        """The values of an event as its handler takes them.

        Raises:
            gr.Error: they are none of this event's components.
        """
        try:
            return await super().preprocess_data(*args, **kwargs)
        except Exception as error:
            raise gr.Error(NO_VALUE, print_exception=False) from error


def build(house: House) -> gr.Blocks:
    """The page. One is built for all users; what each sees is rendered for the user of each event."""
    pieces, header, loading = _pieces(), live("header"), live("loading")
    switcher = Switcher(house.models, house.may_switch)
    view = View(pieces, house.conversations, house.ptkb, house.runs, lambda: house.loading.embedder, switcher.offered)
    choices = UserChoices(house.conversations, house.settings)
    chat_handlers = ChatHandlers(view, house.chat, choices, switcher.switch_to, house.streams.is_open)
    offer = OfferLine(view, switcher)
    panels: Sequence[Panel] = (
        SourcePanel(view, house.documents),
        FactPanel(view, chat_handlers),
        DocumentPanel(view, house.documents, house.chat.arrivals, house.followed),
        WholeWork(view, chat_handlers, house.documents, house.models, house.settings),
        CollectionPanel(view, house.documents, house.settings),
        ModelMenu(view, switcher, house.settings, lambda: house.loading.judges),
        ChoicePanel(view, choices, house.loading.prepare),
        TokenPanel(view, house.tokens),
        UsagePanel(view, house.usage, house.may_switch),
        AccountPanel(view, house.accounts, house.followed),
    )
    page: gr.Blocks = Page(title="Sequitur", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600))
    with page:
        _place(pieces, header, loading, offer, panels)
        chat_handlers.wire()
        opening = Opening(page, pieces.notice)
        Sidebar(view, chat_handlers).wire(page)
        offer.wire(opening)
        for panel in panels:
            panel.wire(opening)
        _show_header(page, header)
        _show_loading(opening, loading, house.loading)
        opening.wire()
    return page


def _pieces() -> Pieces:
    """The live pieces, with the events that each sends."""
    reply_events = ("again", "compare", "choose", "undo", "judge", "remember", "forget", "look")
    return Pieces(
        conversations=live("conversations", "open", "search", "rename", "delete", "export"),
        transcript=live("transcript", "open", *reply_events),
        answering=live("answering", "look"),
        composer=live("composer", "ask", "stop", value=render.render("composer", draft="", nonce=new_id())),
        notice=live("notice"),
        sources=live("sources", "show_original", value=render.render("sources", turn=None)),
        facts=live("facts", "store", "edit", "switch", "drop", "export", "open"),
        documents=live("documents", "drop", "halt", "paste", "fetch", "follow", "see"),
        download=live("download"),
        viewer=live("viewer", "show_original"),
    )


def _place(pieces: Pieces, header: Live, loading: Live, offer: OfferLine, panels: Sequence[Panel]) -> None:
    """Where everything stands; `css/frame.css` makes columns of it."""
    place(header)
    with gr.Column(elem_id="side"):
        place(pieces.conversations)
    with gr.Column(elem_id="main"):
        place(pieces.notice, loading, pieces.download, pieces.viewer)
        with gr.Column(elem_id="talk"):
            place(pieces.transcript, pieces.answering)
        offer.place()
        place(pieces.composer)
    with gr.Column(elem_id="panel"), gr.Tabs(elem_id="tabs", overflow_behavior="wrap"):
        for (name, title), tab_panels in groupby(panels, key=attrgetter("name", "title")):
            with gr.Tab(title, elem_id=f"{name}-tab", render_children=True):
                for panel in tab_panels:
                    panel.place()


def _show_header(page: gr.Blocks, header: Live) -> None:
    """An event of its own: only the request tells whether a person logged in, whose name may be `DEFAULT_USER`."""

    def show(request: gr.Request) -> Updates:
        return {header: render.render("header", user=request.username or "")}

    page.load(show, None, [header], **QUIET)


def _show_loading(opening: Opening, piece: Live, loading: Loading) -> None:
    """Bars while something is being made ready; the timer stops when there is nothing more to tell."""
    timer = gr.Timer(0.5)

    def show() -> Updates:
        over = loading.ready or bool(loading.error)
        stages: Sequence[LoadingStage] = loading.stages()
        html = render.render("loading", ready=loading.ready, error=loading.error, notice=loading.notice, stages=stages)
        return {piece: html, timer: gr.Timer(active=not over)}

    opening.fill([piece, timer], lambda _: show())
    timer.tick(show, None, [piece, timer], **QUIET)
