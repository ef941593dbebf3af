"""The [n] that models write behind sentences, in all their forms."""

from __future__ import annotations

import re
from dataclasses import dataclass

# [1], [1][2], [1, 2], [1-3], [^1] and their full-width and CJK forms, 【1†source】; not inside `code`, not [0] or x[1].
_MARKER = re.compile(
    r"[ \t]*(?<!\b[a-z])[\[【［]\^?([1-9]\d?(?:\s*[,;、–-]\s*\^?[1-9]\d?)*)(?:†[^\]】］\n]*)?[\]】］]+"
)
# A block of code, from fence to fence, and code within a line.
BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True, slots=True)
class UnmarkedText:
    """A text without its markers, and for each marker where it stood and the numbers in it."""

    text: str
    hints: tuple[tuple[int, tuple[int, ...]], ...]


def extract_markers(text: str, max_number: int = 99) -> UnmarkedText:
    """Take the markers out of a text, remembering where they stood; code is left alone.

    So is what names several numbers and one beyond `max_number`, as an interval does ("the range [10, 20]").
    """
    code = [match.span() for pattern in (BLOCK, INLINE) for match in pattern.finditer(text)]
    plain, hints, previous_end = "", [], 0
    for match in _MARKER.finditer(text):
        numbers = _parsed_numbers(match.group(1))
        if any(start <= match.start() < end for start, end in code) or (len(numbers) > 1 and max(numbers) > max_number):
            continue
        plain += text[previous_end : match.start()]
        hints.append((len(plain), numbers))
        previous_end = match.end()
    return UnmarkedText(plain + text[previous_end:], tuple(hints))


def _parsed_numbers(numbers: str) -> tuple[int, ...]:
    values: list[int] = []
    for part in re.split(r"[,;、]", numbers):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        values.extend(range(ends[0], ends[-1] + 1) if len(ends) == 2 else ends)
    return tuple(values)
