"""Rates the catalogue's models for this computer, by its memory and the speeds that were measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import psutil

from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.load import SERVER, backend_of
from assistant.llm.speed_test import MeasuredSpeed, processor_of, speeds
from assistant.settings import Settings

# Tokens that a turn reads (without those in engines' caches) and writes, and the seconds that the small models take:
# the medians of the twelve questions of `bench turn`, rounded up.
_READ_TOKENS, _WRITTEN_TOKENS, _OTHER_SECONDS = 600, 50, 1.5
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


def model_ratings(settings: Settings, running: str = "") -> list[Rating]:
    """Ratings of the models whose number of parameters is known, the smallest first.

    `running` is the name of the loaded model, whose memory becomes free when another one replaces it.
    """
    catalogue = Catalogue.load()
    running_entry = catalogue.listed_entry(running)
    free = psutil.virtual_memory().available + (running_entry.size if running_entry else 0)
    entries = sorted((entry for entry in catalogue.entries if entry.parameters), key=lambda entry: entry.parameters)
    ratings = [_rating(entry, settings, free) for entry in entries]
    fast_ratings = [rating for rating in ratings if rating.verdict is Verdict.FITS and rating.seconds is not None]
    best = next((rating for rating in reversed(fast_ratings) if not rating.entry.for_tests), None)
    return [replace(rating, best=rating is best) for rating in ratings]


def better_model(ratings: Sequence[Rating], running: str) -> Rating | None:
    """The best model, if it has more parameters than the running one; None if that one isn't rated."""
    running_entry = Catalogue.load().listed_entry(running)
    best = next((rating for rating in ratings if rating.best), None)
    if best is None or running_entry is None or not 0 < running_entry.parameters < best.entry.parameters:
        return None
    return best


def _rating(entry: Entry, settings: Settings, free: int) -> Rating:
    contexts = entry.cache_bytes * settings.llm.context * settings.llm.slots
    needs = entry.size + contexts + _WORKING_MEMORY
    seconds = _seconds(entry, settings)
    is_here = Catalogue.load().is_here(entry.name, settings)
    return Rating(entry, needs, seconds, _verdict(needs <= free, seconds, settings.llm.target_turn_seconds), is_here)


def _verdict(has_room: bool, seconds: float | None, target: float) -> Verdict:
    if not has_room:
        return Verdict.TOO_LARGE
    return Verdict.SLOW if seconds is not None and seconds > target else Verdict.FITS


def _seconds(entry: Entry, settings: Settings) -> float | None:
    """The time of a turn, scaled by size from the speed of this model, or else of the measured one nearest in size."""
    backend = _engine(entry, settings)
    processor = processor_of(backend, settings.llm)
    measured_speeds = [
        speed for speed in speeds(settings) if (speed.backend, speed.processor) == (backend, processor) and speed.size
    ]
    if not measured_speeds:
        return None
    own_speed = next((speed for speed in measured_speeds if speed.model == entry.name), None)
    speed = own_speed or min(measured_speeds, key=lambda candidate: _size_ratio(entry, candidate))
    return _OTHER_SECONDS + (_READ_TOKENS / speed.read + _WRITTEN_TOKENS / speed.written) * entry.size / speed.size


def _engine(entry: Entry, settings: Settings) -> str:
    """The backend that would run the model on this computer; a server that is set doesn't count."""
    backend = "auto" if settings.llm.backend == SERVER else settings.llm.backend
    return backend_of(settings.llm.model_copy(update={"backend": backend, "model": entry.name}))


def _size_ratio(entry: Entry, speed: MeasuredSpeed) -> float:
    return max(entry.size, speed.size) / min(entry.size, speed.size)
