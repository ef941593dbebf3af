"""A choice between words from the likeliest tokens alone, as texts: all that many servers tell.

Every form of a word counts for it: "yes", " Yes" and "YES". What the tokens that begin no word hold is not shared out:
where it is most of all, the model said something else, and nothing is made up of the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from assistant.errors import ChoiceError
from assistant.llm.word_choice import normalised
from assistant.types import Choice

# The share of all probability that the words have to hold together.
MIN_MASS = 0.5
# Spaces, and the marks that tokenizers write in their place.
_SPACES = " \t\n\u2581\u0120\u010a"


def choice_from_top_tokens(
    words: tuple[str, ...], top: Sequence[tuple[str, float]], prompt_tokens: int, name: str
) -> Choice:
    """The choice that the likeliest tokens, with their log-probabilities, speak for.

    Raises:
        ChoiceError: two words begin alike, or the tokens that begin any of them are too unlikely together.
    """
    check_first_words(words)
    masses = dict.fromkeys(words, 0.0)
    for text, logprob in top:
        if word := _begun_word(text, words):
            masses[word] += exp(logprob)
    check_mass(masses, name)
    return normalised(masses, prompt_tokens)


def check_mass(masses: Mapping[str, float], name: str) -> None:
    """Refuse words that have too little weight together to choose between them.

    Raises:
        ChoiceError: they have.
    """
    covered = sum(masses.values())
    if covered < MIN_MASS:
        raise ChoiceError(
            f"{name} is unsure: {', '.join(masses)} hold {covered:.0%} of what it would say next, and choosing between"
            f" them takes at least {MIN_MASS:.0%}."
        )


def check_first_words(words: tuple[str, ...]) -> None:
    """Refuse words that a first token can't tell apart.

    Raises:
        ChoiceError: two of them begin with the same word.
    """
    first_words = [word.casefold().split()[0] for word in words]
    for word, first_word in zip(words, first_words, strict=True):
        if first_words.count(first_word) > 1:
            raise ChoiceError(
                f"The model can't choose between {', '.join(words)}: '{word}' begins like another of them."
            )


def _begun_word(token: str, words: tuple[str, ...]) -> str:
    """The only word that the token is, or is the beginning of; a single letter begins too much."""
    text = token.strip(_SPACES).casefold()
    same_words = [word for word in words if word.casefold().split()[0] == text]
    matching_words = same_words or [word for word in words if len(text) > 1 and word.casefold().startswith(text)]
    return matching_words[0] if len(matching_words) == 1 else ""
