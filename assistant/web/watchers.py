"""What each open tab was last asked to show: a tab stops watching an answer as soon as it shows something else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from assistant.runs import Run

# Tabs whose last wish is known. None tells when it is closed: to hear of that, Gradio would keep a connection open for
# each, and a browser has six for a host.
MOST_TABS = 1000


@dataclass(slots=True)
class Watch:
    """What a tab was asked to show: a conversation, and the run that was under way in it.

    `looked` is the id of the turn whose sources were asked for since then.
    """

    run: Run | None
    looked: str = ""


class Watchers:
    """The tabs, by the id of their session."""

    def __init__(self) -> None:
        self._latest: OrderedDict[str, Watch] = OrderedDict()

    def enter(self, session: str, run: Run | None = None) -> Callable[[], bool]:
        """Note that the tab now shows something else. Returns whether that is still the last it was asked for.

        Where there are too many tabs, the one that was asked for something the longest ago is forgotten.
        """
        self._latest.pop(session, None)
        watch = self._latest[session] = Watch(run)  # the newest is the last
        if len(self._latest) > MOST_TABS:
            self._latest.popitem(last=False)
        return lambda: self._latest.get(session) is watch

    def follows(self, session: str, run: Run) -> bool:
        """Whether the tab shows the run as it goes on."""
        watch = self._latest.get(session)
        return watch is not None and watch.run is run

    def look(self, session: str, turn_id: str) -> None:
        """Note that the tab was asked for the sources of a turn."""
        watch = self._latest.get(session)
        if watch:
            watch.looked = turn_id

    def looked(self, session: str) -> str:
        """The id of the turn whose sources were asked for last since `enter`, or ""."""
        watch = self._latest.get(session)
        return watch.looked if watch else ""

    def leave(self, session: str) -> None:
        """Forget what a tab shows that turns to an empty page."""
        self._latest.pop(session, None)
