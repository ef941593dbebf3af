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

EXAMPLES_SUFFIX = "examples"


@dataclass(frozen=True, slots=True)
class Method:
    """One of the methods that are compared; an `uncertainty` of "" means the run's own test for "unknown"."""

    strategy: str
    loop: str
    uncertainty: Uncertainty | str = ""
    threshold: float = 0.0
    examples: bool = False

    def with_settings(self, parts: Parts) -> Parts:
        """The parts with this method's settings."""
        test = {"uncertainty": self.uncertainty, "unknown_threshold": self.threshold} if self.uncertainty else {}
        examples = {"answer_examples": True} if self.examples else {}
        return replace(parts, settings=parts.settings.changed(turn=test | examples))


def parse_method(name: str, loop: str) -> Method:
    """The method of this name; `loop` is the run's.

    Raises:
        SettingsError: it is not written like a method, or it lacks a threshold that it needs.
    """
    own_loop, _, remainder = name.rpartition("/")
    remainder, plus, suffix = remainder.partition("+")
    strategy, at_sign, test_text = remainder.partition("@")
    test, _, threshold_text = test_text.partition(":")
    if (plus and suffix != EXAMPLES_SUFFIX) or (at_sign and test not in get_args(Uncertainty)):
        raise SettingsError(
            f"'{name}' can't be asked; write STRATEGY@WAY:THRESHOLD+{EXAMPLES_SUFFIX}, where the ways are "
            f"{', '.join(get_args(Uncertainty))}."
        )
    return Method(strategy, own_loop or loop, test, _threshold(name, test, threshold_text) if test else 0.0, bool(plus))


def _threshold(method_name: str, test: str, threshold_text: str) -> float:
    defaults = TurnSettings()
    default_thresholds: dict[str, float] = {
        WORD: 0.0,
        defaults.uncertainty: defaults.unknown_threshold,
        "addresses": defaults.addresses_threshold,
    }
    try:
        threshold = float(threshold_text) if threshold_text else default_thresholds[test]
    except (ValueError, KeyError):
        threshold = -1.0
    if not 0 <= threshold <= 1:
        raise SettingsError(f"'{method_name}' needs a threshold from 0 to 1 behind it, as in {test}:0.5.")
    return threshold
