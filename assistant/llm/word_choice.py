"""Maps a choice between a few words to the tokens that a reply may begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from assistant.errors import ChoiceError
from assistant.types import Choice


def first_tokens(words: tuple[str, ...], tokenize: Callable[[str], list[int]]) -> dict[str, list[int]]:
    """For each word its possible first tokens: as given, in lower case, capitalised; with and without a space before.

    A token that begins two of the words counts for neither.

    Raises:
        ChoiceError: no token is left that tells a word from the others.
    """
    found = {word: {tokenize(form)[0] for form in forms(word)} for word in words}
    own = {word: sorted(tokens - _others(word, found)) for word, tokens in found.items()}
    for word, tokens in own.items():
        if not tokens:
            raise ChoiceError(
                f"The model can't choose between {', '.join(words)}: '{word}' begins like another of them."
            )
    return own


def forms(word: str) -> list[str]:
    """The spellings with which a reply may begin with the word."""
    return [space + form for space in ("", " ") for form in (word, word.lower(), word.capitalize())]


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both sequences have in common at their beginning."""
    size = min(len(one), len(other))
    return next((index for index in range(size) if one[index] != other[index]), size)


def normalised(masses: Mapping[str, float], prompt_tokens: int) -> Choice:
    """The choice with these probability masses scaled to sum to 1; equal odds if all of them are 0."""
    total = sum(masses.values())
    if not total:
        return Choice({word: 1 / len(masses) for word in masses}, prompt_tokens)
    return Choice({word: mass / total for word, mass in masses.items()}, prompt_tokens)


def _others(word: str, found: Mapping[str, set[int]]) -> set[int]:
    return {token for other, tokens in found.items() if other != word for token in tokens}
