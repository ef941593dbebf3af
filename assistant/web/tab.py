"""Who sent an event, what their tab shows, and how an error becomes a banner."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from assistant.chat import INTERNAL_ERROR
from assistant.errors import SequiturError
from assistant.store.users import DEFAULT_USER
from assistant.web import render
from assistant.web.live import Live

_LOG = logging.getLogger(__name__)
# Components with their new values; those left out stay as they are.
Updates = dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Tab:
    """One event: the user, the tab's session, what it shows (ids, unchecked), and the values that came with it."""

    user: str
    session: str = ""
    conversation: str = ""
    looked: str = ""
    search: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """A value that came with the event, as text."""
        value = self.data.get(name, "")
        return value if isinstance(value, str) else str(value)

    def number(self, name: str) -> int:
        """A value that came with the event, as a whole number; -1 where it is none."""
        text = self.text(name)
        return int(text) if len(text) < 10 and text.isascii() and text.removeprefix("-").isdigit() else -1


Act = Callable[[Tab], Updates]
Stream = Callable[[Tab], AsyncIterator[Updates]]


def user_of(request: gr.Request) -> str:
    """The name the user logged in with, or `DEFAULT_USER` where there are no logins."""
    return request.username or DEFAULT_USER


def tab_of(event: gr.EventData, request: gr.Request) -> Tab:
    """The event, as the browser sent it: nothing in it but the user can be trusted."""
    payload = event._data  # noqa: SLF001 - as a whole, gradio gives it under no other name
    data: dict[str, Any] = payload if isinstance(payload, dict) else {}
    shown_values = {name: str(data.get(name, ""))[:200] for name in ("conversation", "looked", "search")}
    return Tab(user_of(request), request.session_hash or "", **shown_values, data=data)


def on(piece: Live, event: str, act: Act, outputs: Sequence[Live], notice: Live, aside: bool = False) -> None:
    """Run `act` when `piece` sends `event`; what it raises becomes a banner, and nothing else changes.

    An event `aside` is one that the page sends by itself: it leaves a banner that is there.
    """
    guard = with_error_banner if aside else guarded

    def handle(data: gr.EventData, request: gr.Request) -> Updates:
        return guard(lambda: act(tab_of(data, request)), notice)

    # gradio passes what the annotations of a handler ask for; it has to find at runtime all that they name
    getattr(piece, event)(handle, None, [*outputs, notice], **QUIET)


def on_stream(piece: Live, event: str, stream: Stream, outputs: Sequence[Live], notice: Live) -> None:
    """As `on`, for an event that updates the page several times.

    `stream` runs in the event loop, which serves everybody: whatever asks the database in it does so in a thread.
    """

    async def handle(data: gr.EventData, request: gr.Request) -> AsyncIterator[Updates]:
        async for updates in guarded_stream(stream(tab_of(data, request)), notice):
            yield updates

    getattr(piece, event)(handle, None, [*outputs, notice], **QUIET)


def on_load(page: gr.Blocks, box: gr.Textbox, js: str, stream: Stream, outputs: Sequence[Live], notice: Live) -> None:
    """Run `stream` when the page opens; `js` gives the id of the conversation to show."""

    async def handle(conversation: str, request: gr.Request) -> AsyncIterator[Updates]:
        tab = Tab(user_of(request), request.session_hash or "", conversation[:200])
        async for updates in guarded_stream(stream(tab), notice):
            yield updates

    page.load(handle, box, [*outputs, notice], js=js, **QUIET)


async def guarded_stream(stream: AsyncIterator[Updates], notice: Live) -> AsyncIterator[Updates]:
    """What `stream` yields, and a banner if it fails."""
    try:
        async for updates in stream:
            yield updates
    except SequiturError as error:
        yield {notice: render.notice(str(error))}
    except Exception:  # noqa: BLE001 - a person is told in words, the log has the details
        _LOG.exception("an event of the page failed")
        yield {notice: render.notice(INTERNAL_ERROR)}


def guarded(act: Callable[[], Updates], notice: Live) -> Updates:
    """What `act` returns, with no banner but its own; or a banner that says what went wrong."""
    return with_error_banner(lambda: {notice: "", **act()}, notice)


def with_error_banner(act: Callable[[], Updates], notice: Live) -> Updates:
    """What `act` returns, or a banner that says what went wrong; a banner that is there stays otherwise.

    For what happens beside something else, such as one of the things that fill the page when it opens, or a rating of
    what is being typed: they come in any order.
    """
    try:
        return act()
    except SequiturError as error:
        return {notice: render.notice(str(error))}
    except Exception:  # noqa: BLE001
        _LOG.exception("an event of the page failed")
        return {notice: render.notice(INTERNAL_ERROR)}


# Users don't wait for each other, a click is never swallowed, and nothing is dimmed. Values are sent as they are: where
# Gradio prepares them, it keeps one more copy of a piece for the tab whenever an event that left the piece alone comes
# before one that changes it (6.31, `SessionState.config_values`).
QUIET: dict[str, Any] = {
    "postprocess": False,
    "show_progress": "hidden",
    "concurrency_limit": None,
    "trigger_mode": "multiple",
    "api_visibility": "private",
}
