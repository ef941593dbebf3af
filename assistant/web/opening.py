"""Fills the page when it opens: one event for all its parts, since each event is several requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gradio as gr

from assistant.web.live import Live
from assistant.web.tab import QUIET, Updates, user_of, with_error_banner


@dataclass(frozen=True, slots=True)
class _Filling:
    show: Callable[[str], Updates]
    outputs: tuple[Any, ...]


@dataclass(frozen=True)
class Opening:
    """Collects who fills what; `wire`, after all others have listened, makes the events of it."""

    page: gr.Blocks
    notice: Live
    _first: list[_Filling] = field(default_factory=list)
    _after: dict[Live, list[_Filling]] = field(default_factory=lambda: defaultdict(list))

    def fill(self, outputs: Sequence[Any], show: Callable[[str], Updates], *, after: Live | None = None) -> None:
        """Have `show` fill `outputs` for the user when the page opens; or whenever the piece `after` was drawn anew.

        The piece `after` is one that is itself filled when the page opens. A `show` that fails becomes a banner, and
        the others fill theirs all the same.
        """
        (self._first if after is None else self._after[after]).append(_Filling(show, tuple(outputs)))

    def wire(self) -> None:
        """One event for what is filled when the page opens, and one for each piece that others follow."""
        self._on(self.page.load, self._first)
        for piece, followers in self._after.items():
            self._on(piece.change, followers)

    def _on(self, event: Callable[..., Any], fillings: Sequence[_Filling]) -> None:
        def handle(request: gr.Request) -> Updates:
            user = user_of(request)
            updates: Updates = {}
            for filling in fillings:
                updates |= with_error_banner(partial(filling.show, user), self.notice)
            return updates

        outputs = dict.fromkeys(output for filling in fillings for output in filling.outputs)
        event(handle, None, [*outputs, self.notice], **QUIET)
