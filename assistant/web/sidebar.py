"""What happens in the sidebar: opening, searching, renaming, exporting and deleting conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import gradio as gr

from assistant.errors import StoreError
from assistant.store.conversations import is_temporary
from assistant.web.chat import ChatHandlers
from assistant.web.exported import exported
from assistant.web.tab import Tab, Updates, on, on_load, on_stream
from assistant.web.view import View

# The address of a page ends in the id of its conversation, so that a tab finds it again after a reload.
CONVERSATION_OF_ADDRESS = "() => location.hash.slice(1)"
# What is opened in the place of a conversation's id to begin one that is not kept.
NEW_TEMPORARY = "temporary"


class Sidebar:
    """The handlers."""

    def __init__(self, view: View, chat_handlers: ChatHandlers) -> None:
        self._view, self._chat_handlers, self._conversations = view, chat_handlers, view.conversations

    def wire(self, page: gr.Blocks) -> None:
        """Listen; when the page opens, show the conversation that its address names."""
        pieces = self._view.pieces
        outputs = [pieces.transcript, pieces.answering, pieces.conversations, pieces.sources, pieces.facts]
        on_stream(pieces.transcript, "open", self.open, outputs, pieces.notice)
        on_stream(pieces.conversations, "open", self.open, outputs, pieces.notice)
        on_stream(pieces.facts, "open", self.open, outputs, pieces.notice)
        conversation_box = gr.Textbox(visible="hidden")
        on_load(page, conversation_box, CONVERSATION_OF_ADDRESS, self.open, outputs, pieces.notice)
        on(pieces.conversations, "search", self.search, outputs, pieces.notice)
        on(pieces.conversations, "rename", self.rename, outputs, pieces.notice)
        on(pieces.conversations, "delete", self.delete, outputs, pieces.notice)
        on(pieces.conversations, "export", self.export, [pieces.download], pieces.notice)

    async def open(self, tab: Tab) -> AsyncIterator[Updates]:
        """Show a conversation, or an empty page; an answer that is being written in it is watched to its end.

        A temporary conversation is gone once it is left.
        """
        previous = tab.text("shown")
        if is_temporary(previous) and previous != tab.conversation:
            with suppress(StoreError):
                await asyncio.to_thread(self._discard, tab.user, previous)
        if tab.conversation == NEW_TEMPORARY:
            tab = replace(tab, conversation=self._conversations.new(tab.user, temporary=True).id)
        try:
            run = self._view.runs.of(tab.user, tab.conversation)
            async for updates in self._chat_handlers.show(tab, run):
                yield updates
        except StoreError:
            async for updates in self._chat_handlers.show(replace(tab, conversation=""), None):
                yield updates
            raise

    def search(self, tab: Tab) -> Updates:
        """List the conversations that have the words in title or text."""
        return self._view.sidebar(tab)

    def rename(self, tab: Tab) -> Updates:
        """Give a conversation another title."""
        self._conversations.rename(tab.user, tab.text("target"), tab.text("title"))
        return self._view.sidebar(tab)

    def delete(self, tab: Tab) -> Updates:
        """Delete a conversation; what is being written in it is stopped."""
        target = tab.text("target")
        self._conversations.delete(tab.user, target)  # first: who watches the end of a reply finds it gone
        is_shown = target == tab.conversation
        if is_shown:
            self._chat_handlers.leave(tab)  # or it would be told that the conversation is gone
        self._halt(tab.user, target)
        return self._view.all(replace(tab, conversation="")) if is_shown else self._view.sidebar(tab)

    def _discard(self, user: str, target: str) -> None:
        self._conversations.delete(user, target)
        self._halt(user, target)

    def _halt(self, user: str, target: str) -> None:
        run = self._view.runs.of(user, target)
        if run:
            run.stop.set()
            run.join(5)

    def export(self, tab: Tab) -> Updates:
        """The conversation as a file of Markdown or HTML."""
        target = tab.text("target")
        conversation = self._conversations.get(tab.user, target)
        name = _file_name(conversation.title)
        if tab.text("kind") == "html":
            return self._view.save(f"{name}.html", exported(conversation, tab.text("site")))
        return self._view.save(f"{name}.md", self._conversations.export_markdown(tab.user, target))


def _file_name(title: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in title).strip("-")[:60] or "conversation"
