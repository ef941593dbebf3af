"""Records where a smaller judge, which comes with Sequitur, stands in for a larger one that could not be loaded."""

from __future__ import annotations

import logging
from collections.abc import Callable

from assistant.errors import ModelError

_LOG = logging.getLogger(__name__)
# Called with what the smaller judge is for, and why the larger one can't be used.
Instead = Callable[[str, ModelError], None]


def logged(judged: str, why: ModelError) -> None:
    """Log it, and no more."""
    _LOG.warning("The smaller judge of %s is used: %s", judged, why)


class StandIns:
    """Collects the stand-ins that it is called with."""

    def __init__(self) -> None:
        self._why: dict[str, ModelError] = {}

    def __call__(self, judged: str, why: ModelError) -> None:
        """Note it; it is logged, too."""
        logged(judged, why)
        self._why[judged] = why

    @property
    def told(self) -> str:
        """A sentence or two for people, "" where no judge stands in for another."""
        if not self._why:
            return ""
        *others, last = self._why
        judged = f"{', '.join(others)} and {last}" if others else last
        return f"Until the next start smaller judges stand in for the larger ones, of {judged}. {self._why[last]}"
