"""How llama.cpp is made to choose between tokens: its own probabilities of them, with all others left out.

The same large bias on all wanted tokens leaves nothing to the others and their proportions as they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assistant.llm.word_choice import normalised
from assistant.types import Choice

_BIAS = 100.0


def request(words: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """What a completion is asked for, so that its only token tells how likely each word's tokens are."""
    all_tokens = [token for tokens in words.values() for token in tokens]
    return {
        "max_tokens": 1,
        "temperature": 1.0,
        "samplers": ["temperature"],
        "logit_bias": [[token, _BIAS] for token in all_tokens],
        "n_probs": len(all_tokens),
        "post_sampling_probs": True,
    }


def choice(pieces: Sequence[Mapping[str, Any]], words: Mapping[str, Sequence[int]], prompt_tokens: int) -> Choice:
    """The choice that these pieces of the completion tell; even odds where there are none."""
    probabilities = {top["id"]: top["prob"] for piece in pieces for top in piece["top_probs"]}
    masses = {word: sum(probabilities.get(token, 0.0) for token in tokens) for word, tokens in words.items()}
    return normalised(masses, prompt_tokens)
