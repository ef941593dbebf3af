"""What a tab of the panel beside the conversation is; a new one is a class like this, named in `page.build`."""

from __future__ import annotations

from typing import Protocol

from assistant.web.live import live, place
from assistant.web.opening import Opening
from assistant.web.tab import on
from assistant.web.view import View


class Panel(Protocol):
    """One tab, or a part of it. The script opens it by its `name`; people read its `title`; equal ones share a tab."""

    name: str
    title: str

    def place(self) -> None:
        """Place its components, in its tab."""
        ...

    def wire(self, opening: Opening, /) -> None:
        """Listen to what its components send; tell `opening` what fills them when the page opens."""
        ...


class PiecePanel:
    """One live piece, with a method of the same name for each event that it sends."""

    def __init__(self, view: View, piece: str, *events: str) -> None:
        self._view, self._piece, self._events = view, live(piece, *events), events

    def place(self) -> None:
        """Place the piece."""
        place(self._piece)

    def _listen(self) -> None:
        """Let the methods handle the events; each updates the piece alone."""
        for event in self._events:
            on(self._piece, event, getattr(self, event), [self._piece], self._view.pieces.notice)
