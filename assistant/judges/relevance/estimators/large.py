"""The larger relevance estimator: MPNet, which is fetched once, with an adapter that comes with Sequitur.

It has five times the weights of the cross-encoder that comes with Sequitur, and learned from more than four times as
many questions.
"""

from __future__ import annotations

from pathlib import Path

from assistant.judges.relevance.estimators.cross_encoder import CrossEncoderEstimator

FOLDER = Path(__file__).parents[2] / "shipped" / "relevance-large"
SHIPPED: Path | None = FOLDER


def added(folder: Path, name: str, base: Path) -> CrossEncoderEstimator:
    """What a folder adds to this encoder; see `estimators.AdapterModule`."""
    return CrossEncoderEstimator(folder, name, base)
