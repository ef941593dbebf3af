"""Claims of which people marked the words that their evidence doesn't support, as pairs to choose a threshold on.

One row is of WiCE's training part (Kamoi et al. 2023, `non_supported_tokens_train`):

    {"claim_tokens": ["The", "audience", ...], "non_supported_spans": [false, false, ...], "evidence": ["By D.", ...],
     "supporting_sentences": [[27]]}

The whole claim is not supported, and what is left of it without those words is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assistant.errors import DataError
from assistant.evaluation.support import Pair
from assistant.experiment.datasets import records

# Words of a claim that is left, at least, and of the evidence that is read around what supports it, at most.
_MIN_CLAIM_WORDS, _MAX_EVIDENCE_WORDS = 5, 250
# What is written without a space in front of it.
_CLOSING = frozenset(",.;:!?)’'%")


def read_spans(path: Path) -> list[Pair]:
    """Two pairs of each row: the claim, and what of it is supported where that is still a sentence.

    Raises:
        DataError: the file can't be read, or a row lacks what such a row has.
    """
    pairs: list[Pair] = []
    for location, row in records(path):
        try:
            pairs += _pairs(row)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise DataError(f"{location}, is no claim with marked words ({error}); give the file as it is.") from error
    return pairs


def _pairs(row: dict[str, Any]) -> Iterator[Pair]:
    tokens, marks = row["claim_tokens"], row["non_supported_spans"]
    evidence = _evidence_around(row["evidence"], row["supporting_sentences"][0])
    supported_tokens = [token for token, is_marked in zip(tokens, marks, strict=True) if not is_marked]
    claim_label = "partially_supported" if len(supported_tokens) < len(tokens) else "supported"
    yield Pair(claim=_detokenised(tokens), evidence=evidence, label=claim_label)
    if _MIN_CLAIM_WORDS <= len(supported_tokens) < len(tokens):
        yield Pair(claim=_detokenised(supported_tokens), evidence=evidence, label="supported")


def _evidence_around(texts: list[str], supporting: list[int]) -> str:
    """The supporting sentences with as many around them as fit the words, in their order."""
    chosen_positions = set(supporting)
    for distance in range(1, len(texts)):
        for position in supporting:
            for neighbour in (position - distance, position + distance):
                if (
                    0 <= neighbour < len(texts)
                    and sum(len(texts[n].split()) for n in (*chosen_positions, neighbour)) <= _MAX_EVIDENCE_WORDS
                ):
                    chosen_positions.add(neighbour)
    return " ".join(texts[n] for n in sorted(chosen_positions))


def _detokenised(tokens: list[str]) -> str:
    text = "".join(token if token in _CLOSING else f" {token}" for token in tokens)
    return text.strip().replace(" - ", "-").replace(" 's", "'s")
