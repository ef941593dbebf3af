"""Relevance as a larger network tells it: MPNet, fetched once, and what it learned for this on top.

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
