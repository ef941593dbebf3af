"""The page: its pieces, where they stand, and who listens to what they send."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import gradio as gr

from assistant.chat import Chat
from assistant.parts import Stage
from assistant.protocols import Embedder
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.types import Choices, new_id
from assistant.web import render
from assistant.web.chat import Talk
from assistant.web.choices import ChoicePanel, ChoicesOf
from assistant.web.facts import Facts
from assistant.web.library import READ, Documents, Library
from assistant.web.live import Live, live
from assistant.web.runs import Runs
from assistant.web.sidebar import Sidebar
from assistant.web.tab import QUIET, Updates
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb

FOLDER = Path(__file__).parent


class Loading(Protocol):
    """What is still being made ready, as `assistant.parts.Loader` tells it."""

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        ...

    @property
    def error(self) -> str:
        """Why loading failed, or ""."""
        ...

    @property
    def notice(self) -> str:
        """What a person should know though everything works, or ""."""
        ...

    @property
    def embedder(self) -> Embedder | None:
        """Sentence-BERT, as soon as it is there."""
        ...

    def stages(self) -> tuple[Stage, ...]:
        """The stages, in order."""
        ...

    def prepare(self, user: str, choices: Choices) -> str:
        """Begin to make what these choices need and is not there; the sentence that tells so, or ""."""
        ...


@dataclass(frozen=True)
class House:
    """What the page is built on."""

    settings: Settings
    chat: Chat
    conversations: Conversations
    ptkb: Ptkb
    documents: Documents
    loading: Loading
    runs: Runs


def build(house: House) -> gr.Blocks:
    """The page. One is built for all users; what each sees is rendered for the user of each event."""
    page: gr.Blocks = gr.Blocks(title="Sequitur", fill_width=True, analytics_enabled=False, delete_cache=(3600, 3600))
    with page:
        header = live("header")
        with gr.Column(elem_id="side"):
            conversations = live("conversations", "open", "search", "rename", "delete", "export")
        with gr.Column(elem_id="main"):
            notice, loading = live("notice"), live("loading")
            download = live("download")
            with gr.Column(elem_id="talk"):
                transcript = live(
                    "transcript",
                    *("open", "again", "compare", "choose", "undo", "judge", "remember", "forget", "look"),
                )
                answering = live("answering", "look")
            composer = live("composer", "ask", "stop", value=render.render("composer", draft="", nonce=new_id()))
        with gr.Column(elem_id="panel"), gr.Tabs(elem_id="tabs", overflow_behavior="wrap"):
            with gr.Tab("Sources", elem_id="sources-tab", render_children=True):
                sources = live("sources", value=render.render("sources", turn=None))
            with gr.Tab("My facts", elem_id="facts-tab", render_children=True):
                facts = live("facts", "store", "edit", "switch", "drop", "export", "open")
                bring = gr.UploadButton("Import facts (.txt, .json)", file_types=[".txt", ".json"], elem_id="bring")
            with gr.Tab("Documents", elem_id="documents-tab", render_children=True):
                files = gr.File(
                    label="Add documents", file_count="multiple", file_types=list(READ), height=150, elem_id="files"
                )
                documents = live("documents", "drop")
            with gr.Tab("Settings", elem_id="settings-tab", render_children=True):
                pieces = Pieces(
                    conversations, transcript, answering, composer, notice, sources, facts, documents, download
                )
                view = View(pieces, house.conversations, house.ptkb, house.runs, lambda: house.loading.embedder)
                choices = ChoicesOf(house.conversations, house.settings)
                panel = ChoicePanel(view, choices, house.loading.prepare)
        talk = Talk(view, house.chat, choices)
        talk.wire()
        Sidebar(view, talk).wire(page)
        Facts(view, talk, bring).wire()
        Library(view, house.documents, files, house.chat.arrivals).wire(page)
        panel.wire(page)
        _show_header(page, header)
        _show_loading(page, loading, house.loading)
    return page


def _show_header(page: gr.Blocks, header: Live) -> None:
    def show(request: gr.Request) -> Updates:
        return {header: render.render("header", user=request.username or "")}

    show.__annotations__ = {"request": gr.Request}
    page.load(show, None, [header], **QUIET)


def _show_loading(page: gr.Blocks, piece: Live, loading: Loading) -> None:
    """Bars while something is being made ready; the timer stops when there is nothing more to tell."""
    timer = gr.Timer(0.5)

    def show() -> Updates:
        over = loading.ready or bool(loading.error)
        stages: Sequence[Stage] = loading.stages()
        html = render.render("loading", ready=loading.ready, error=loading.error, notice=loading.notice, stages=stages)
        return {piece: html, timer: gr.Timer(active=not over)}

    page.load(show, None, [piece, timer], **QUIET)
    timer.tick(show, None, [piece, timer], **QUIET)
