"""Measures the engine in use in the background, once, while nobody is being answered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

from assistant.errors import ModelError
from assistant.llm.measured import is_measured, measured
from assistant.protocols import Engine
from assistant.settings import Settings

_LOG = logging.getLogger(__name__)
# Seconds without a turn, after which a measurement disturbs nobody, and between looks at whether there is one.
_QUIET = 5.0


class Gauge:
    """Measures engines; `idle` says whether one has no turn in hand, and None where it is not in use any more."""

    def __init__(self, settings: Settings, idle: Callable[[Engine], bool | None], quiet: float = _QUIET) -> None:
        self._settings, self._idle, self._quiet = settings, idle, quiet
        self._stop = Event()

    def start(self, engine: Engine, settings: Settings, then: Callable[[], None]) -> None:
        """Measure this engine, which was made with these settings, as soon as it is idle; then call `then`.

        One whose speed is kept already is not measured anew. All is done in the background.
        """
        Thread(target=self._run, args=(engine, settings, then), name="gauge", daemon=True).start()

    def stop(self) -> None:
        """Let a turn go first: what is being measured is begun anew after it."""
        self._stop.set()

    def _run(self, engine: Engine, settings: Settings, then: Callable[[], None]) -> None:
        try:
            if is_measured(engine, settings) or self._measure(engine, settings):
                then()
        except ModelError as error:
            _LOG.info("the speed of %s is not known: %s", engine.name, error)
        except Exception:  # noqa: BLE001 - answers don't depend on it
            _LOG.exception("measuring %s failed", engine.name)

    def _measure(self, engine: Engine, settings: Settings) -> bool:
        """Whether it was measured before another one took its place."""
        wait = Event()
        while (idle := self._idle(engine)) is not None:
            self._stop = stop = Event()
            wait.wait(self._quiet)
            if idle and self._idle(engine) and not stop.is_set() and measured(engine, settings, stop):
                return True
        return False
