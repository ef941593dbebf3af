"""What a tab of the panel beside the conversation is; a new one is a class like this, named in `page.build`."""

from __future__ import annotations

from typing import Protocol

import gradio as gr


class Panel(Protocol):
    """One tab, or a part of it. The script opens it by its `name`; people read its `title`; equal ones share a tab."""

    name: str
    title: str

    def place(self) -> None:
        """Place its components, in its tab."""
        ...

    def wire(self, page: gr.Blocks, /) -> None:
        """Listen to what its components send, and fill them when the page opens."""
        ...
