"""What may vary within one measurement of answers."""

from __future__ import annotations

from dataclasses import dataclass

from assistant.experiment.datasets import Gold


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """What can vary within one run: passages shown, where the gold one is, samples per prompt (1 = greedy), shots."""

    k: int = 5
    placement: Gold = "none"
    samples: int = 1
    shots: int = 0

    def __str__(self) -> str:
        shots = f", {self.shots}-shot" if self.shots else ""
        return f"k = {self.k}, gold {self.placement}, p = {self.samples}{shots}"
