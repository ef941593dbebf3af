"""Which models of the catalogue this computer runs, and how fast: by its memory, and by what was measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import psutil

from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.load import SERVER, backend_of
from assistant.llm.speed_test import MeasuredSpeed, place_of, speeds
from assistant.settings import Settings

# Tokens of a turn that are read (without what engines find in their caches) and written, and the seconds that the small
# models take: the medians of the twelve questions of `bench turn`, rounded up.
_READ, _WRITTEN, _OTHERS = 600, 50, 1.5
# What engines hold beside weights and contexts (docs/results/llm.md).
_WORKING_MEMORY = 1 << 30


class Verdict(StrEnum):
    """Whether this computer runs a model. A model whose speed isn't known yet fits where its memory does."""

    FITS = "fits"
    SLOW = "slow"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Rating:
    """What a model of the catalogue would be on this computer.

    `needs` are bytes of memory. `seconds` is the time of a usual turn, None where no model was measured; `here` says
    whether it is on the disk. The `best` one is the largest that is known to answer within the aim.
    """

    entry: Entry
    needs: int
    seconds: float | None
    verdict: Verdict
    here: bool
    best: bool = False


def rated(settings: Settings, running: str = "") -> list[Rating]:
    """The models that have a number of parameters, the smallest first.

    `running` is the name of the model that is loaded now, whose memory is free once another takes its place.
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
    """The best model, where it has more parameters than the one that runs; none beside one that isn't rated."""
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
    """A turn's time, by the speed of the model itself or of the one nearest in size: every token takes all weights."""
    backend = _engine(entry, settings)
    place = place_of(backend, settings.llm)
    told = [one for one in speeds(settings) if (one.backend, one.processor) == (backend, place) and one.size]
    if not told:
        return None
    speed = next((one for one in told if one.model == entry.name), None) or min(told, key=lambda one: _far(entry, one))
    return _OTHERS + (_READ / speed.read + _WRITTEN / speed.written) * entry.size / speed.size


def _engine(entry: Entry, settings: Settings) -> str:
    """What would run the model here; where a server answers now, what would run it instead."""
    backend = "auto" if settings.llm.backend == SERVER else settings.llm.backend
    return backend_of(settings.llm.model_copy(update={"backend": backend, "model": entry.name}))


def _far(entry: Entry, speed: MeasuredSpeed) -> float:
    return max(entry.size, speed.size) / min(entry.size, speed.size)
