"""Measures the speed of the running engine in the background, once, while nobody is being answered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Thread

from assistant.errors import ModelError
from assistant.llm.speed_test import is_measured, measure_speed
from assistant.protocols import Engine
from assistant.settings import Settings

_LOG = logging.getLogger(__name__)
# Seconds without a turn after which a measurement disturbs nobody, and seconds between checks for one.
_QUIET = 5.0


class IdleSpeedTest:
    """Measures engines while they are idle. `idle` tells whether an engine has no turn; None once it was replaced."""

    def __init__(self, settings: Settings, idle: Callable[[Engine], bool | None], quiet: float = _QUIET) -> None:
        self._settings, self._idle, self._quiet = settings, idle, quiet
        self._stop = Event()

    def start(self, engine: Engine, settings: Settings, then: Callable[[], None]) -> None:
        """Measure this engine, which was loaded with these settings, as soon as it is idle; then call `then`.

        An engine whose speed is stored already is not measured again. Everything happens in the background.
        """
        Thread(target=self._run, args=(engine, settings, then), name="gauge", daemon=True).start()

    def stop(self) -> None:
        """Interrupt a measurement for a turn; it starts over afterwards."""
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
        """Whether the engine could be measured before another one replaced it."""
        wait = Event()
        while (idle := self._idle(engine)) is not None:
            self._stop = stop = Event()
            wait.wait(self._quiet)
            if idle and self._idle(engine) and not stop.is_set() and measure_speed(engine, settings, stop):
                return True
        return False
