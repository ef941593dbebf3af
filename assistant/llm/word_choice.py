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
    tokens_by_word = {word: {tokenize(form)[0] for form in forms(word)} for word in words}
    own_tokens = {
        word: sorted(tokens - _tokens_of_others(word, tokens_by_word)) for word, tokens in tokens_by_word.items()
    }
    for word, tokens in own_tokens.items():
        if not tokens:
            raise ChoiceError(
                f"The model can't choose between {', '.join(words)}: '{word}' begins like another of them."
            )
    return own_tokens


def forms(word: str) -> list[str]:
    """The spellings with which a reply may begin with the word."""
    return [space + form for space in ("", " ") for form in (word, word.lower(), word.capitalize())]


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens both sequences have in common at their beginning."""
    size = min(len(first), len(second))
    return next((index for index in range(size) if first[index] != second[index]), size)


def normalised(masses: Mapping[str, float], prompt_tokens: int) -> Choice:
    """The choice with these probability masses scaled to sum to 1; equal odds if all of them are 0."""
    total = sum(masses.values())
    if not total:
        return Choice({word: 1 / len(masses) for word in masses}, prompt_tokens)
    return Choice({word: mass / total for word, mass in masses.items()}, prompt_tokens)


def _tokens_of_others(word: str, tokens_by_word: Mapping[str, set[int]]) -> set[int]:
    return {token for other, tokens in tokens_by_word.items() if other != word for token in tokens}
