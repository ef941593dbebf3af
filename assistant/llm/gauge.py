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

    def start(self, engine: Engine, settings: Settings) -> None:
        """Measure this engine, which was made with these settings, as soon as it is idle."""
        if not is_measured(engine, settings):
            Thread(target=self._measure, args=(engine, settings), name="gauge", daemon=True).start()

    def stop(self) -> None:
        """Let a turn go first: what is being measured is begun anew after it."""
        self._stop.set()

    def _measure(self, engine: Engine, settings: Settings) -> None:
        wait = Event()
        try:
            while (idle := self._idle(engine)) is not None:
                self._stop = stop = Event()
                wait.wait(self._quiet)
                if idle and self._idle(engine) and not stop.is_set() and measured(engine, settings, stop):
                    return
        except ModelError as error:
            _LOG.info("the speed of %s is not known: %s", engine.name, error)
        except Exception:  # noqa: BLE001 - answers don't depend on it
            _LOG.exception("measuring %s failed", engine.name)
