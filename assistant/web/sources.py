"""The sources panel: what a reply was read from. It is filled by those who show a conversation or a turn of it."""

from __future__ import annotations

import gradio as gr

from assistant.web.live import place
from assistant.web.view import View


class Sources:
    """The panel."""

    name, title = "sources", "Sources"

    def __init__(self, view: View) -> None:
        self._view = view

    def place(self) -> None:
        """Place its piece."""
        place(self._view.pieces.sources)

    def wire(self, _page: gr.Blocks) -> None:
        """Listen to nothing: what can be pressed in it is in the hands of the browser alone."""
