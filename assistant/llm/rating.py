"""Rates the catalogue's models for this computer, by its memory and the speeds that were measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import psutil

from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.load import SERVER, backend_of
from assistant.llm.speed_test import MeasuredSpeed, place_of, speeds
from assistant.settings import Settings

# Tokens that a turn reads (without those in engines' caches) and writes, and the seconds that the small models take:
# the medians of the twelve questions of `bench turn`, rounded up.
_READ, _WRITTEN, _OTHERS = 600, 50, 1.5
# Memory that engines need besides weights and contexts (docs/results/llm.md).
_WORKING_MEMORY = 1 << 30


class Verdict(StrEnum):
    """Whether this computer can run a model. A model whose speed isn't known yet fits if its memory does."""

    FITS = "fits"
    SLOW = "slow"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Rating:
    """How a model of the catalogue would run on this computer.

    `needs` is its memory in bytes, `seconds` the time of a usual turn (None if no model was measured), and `here` says
    whether it is on the disk. `best` marks the largest model that is known to answer within the target time.
    """

    entry: Entry
    needs: int
    seconds: float | None
    verdict: Verdict
    here: bool
    best: bool = False


def rated(settings: Settings, running: str = "") -> list[Rating]:
    """Ratings of the models whose number of parameters is known, the smallest first.

    `running` is the name of the loaded model, whose memory becomes free when another one replaces it.
    """
    catalogue = Catalogue.load()
    loaded = catalogue.known(running)
    free = psutil.virtual_memory().available + (loaded.size if loaded else 0)
    entries = sorted((one for one in catalogue.entries if one.parameters), key=lambda one: one.parameters)
    ratings = [_rating(entry, settings, free) for entry in entries]
    quick = [one for one in ratings if one.verdict is Verdict.FITS and one.seconds is not None]
    best = next((one for one in reversed(quick) if not one.entry.for_tests), None)
    return [replace(one, best=one is best) for one in ratings]


def offered(ratings: Sequence[Rating], running: str) -> Rating | None:
    """The best model, if it has more parameters than the running one; None if that one isn't rated."""
    loaded = Catalogue.load().known(running)
    best = next((one for one in ratings if one.best), None)
    if best is None or loaded is None or not 0 < loaded.parameters < best.entry.parameters:
        return None
    return best


def _rating(entry: Entry, settings: Settings, free: int) -> Rating:
    contexts = entry.cache_bytes * settings.llm.context * settings.llm.slots
    needs = entry.size + contexts + _WORKING_MEMORY
    seconds = _seconds(entry, settings)
    here = Catalogue.load().is_here(entry.name, settings)
    return Rating(entry, needs, seconds, _verdict(needs <= free, seconds, settings.llm.target_turn_seconds), here)


def _verdict(has_room: bool, seconds: float | None, aim: float) -> Verdict:
    if not has_room:
        return Verdict.TOO_LARGE
    return Verdict.SLOW if seconds is not None and seconds > aim else Verdict.FITS


def _seconds(entry: Entry, settings: Settings) -> float | None:
    """The time of a turn, scaled by size from the speed of this model, or else of the measured one nearest in size."""
    backend = _engine(entry, settings)
    place = place_of(backend, settings.llm)
    measured = [one for one in speeds(settings) if (one.backend, one.processor) == (backend, place) and one.size]
    if not measured:
        return None
    own = next((speed for speed in measured if speed.model == entry.name), None)
    speed = own or min(measured, key=lambda one: _size_ratio(entry, one))
    return _OTHERS + (_READ / speed.read + _WRITTEN / speed.written) * entry.size / speed.size


def _engine(entry: Entry, settings: Settings) -> str:
    """The backend that would run the model on this computer; a server that is set doesn't count."""
    backend = "auto" if settings.llm.backend == SERVER else settings.llm.backend
    return backend_of(settings.llm.model_copy(update={"backend": backend, "model": entry.name}))


def _size_ratio(entry: Entry, speed: MeasuredSpeed) -> float:
    return max(entry.size, speed.size) / min(entry.size, speed.size)
