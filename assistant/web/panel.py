"""What a tab of the panel beside the conversation is; a new one is a class like this, named in `page.build`."""

from __future__ import annotations

from typing import Protocol

from assistant.web.opening import Opening


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
