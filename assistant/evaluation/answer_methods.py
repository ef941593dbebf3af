"""The methods that `evaluate answers` compares: a strategy, with a loop and a test for "unknown" of its own if named.

A method is written LOOP/STRATEGY@WAY:THRESHOLD+examples; only the strategy is required:

    concat                          as the run's settings have it
    concat_pf@word                  only the word "unknown" counts
    concat_pf@addresses:0.5         an answer counts as unknown under a probability of 0.5 (`turn.uncertainty`)
    concat+examples                 answers to other questions are shown for their form (`turn.answer_examples`)
    itrg_refresh/document           passages found by that loop
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from assistant.errors import SettingsError
from assistant.judges.uncertainty import WORD
from assistant.protocols import Parts
from assistant.settings import TurnSettings, Uncertainty

EXAMPLES = "examples"


@dataclass(frozen=True, slots=True)
class Method:
    """One of the methods that are compared; a `way` of "" means the run's own test for "unknown"."""

    strategy: str
    loop: str
    way: Uncertainty | str = ""
    threshold: float = 0.0
    examples: bool = False

    def with_settings(self, parts: Parts) -> Parts:
        """The parts with this method's settings."""
        doubt = {"uncertainty": self.way, "unknown_threshold": self.threshold} if self.way else {}
        shown = {"answer_examples": True} if self.examples else {}
        return replace(parts, settings=parts.settings.changed(turn={**doubt, **shown}))


def method(name: str, loop: str) -> Method:
    """The method of this name; `loop` is the run's.

    Raises:
        SettingsError: it is not written like a method, or it lacks a threshold that it needs.
    """
    own, _, rest = name.rpartition("/")
    rest, plus, shown = rest.partition("+")
    strategy, at, doubt = rest.partition("@")
    way, _, threshold = doubt.partition(":")
    if (plus and shown != EXAMPLES) or (at and way not in get_args(Uncertainty)):
        raise SettingsError(
            f"'{name}' can't be asked; write STRATEGY@WAY:THRESHOLD+{EXAMPLES}, where the ways are "
            f"{', '.join(get_args(Uncertainty))}."
        )
    return Method(strategy, own or loop, way, _threshold(name, way, threshold) if way else 0.0, bool(plus))


def _threshold(name: str, way: str, said: str) -> float:
    usual = TurnSettings()
    known: dict[str, float] = {
        WORD: 0.0,
        usual.uncertainty: usual.unknown_threshold,
        "addresses": usual.addresses_threshold,
    }
    try:
        found = float(said) if said else known[way]
    except (ValueError, KeyError):
        found = -1.0
    if not 0 <= found <= 1:
        raise SettingsError(f"'{name}' needs a threshold from 0 to 1 behind it, as in {way}:0.5.")
    return found
