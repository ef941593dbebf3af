"""What two texts share in words, names and numbers; names and numbers are what embeddings and small models blur."""

from __future__ import annotations

import re

from assistant.text.sentences import normalise

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
# Years, as far as can be seen: four digits alone. Those that end in two zeros may be other numbers, rounded.
_YEAR = re.compile(r"(?<![\w.,])(?:1\d|20)(?!00)\d\d(?![\w]|[.,]\d)")
# "1939-45"
_SPAN = re.compile(r"(?<![\w.,-])(1\d|20)(\d\d)[-–/](\d\d)(?![\w-]|[.,]\d)")
# A number may be rounded by this share, and counts up to this one need not be in the text.
ROUNDING = 0.04
MAX_SMALL_COUNT = 10
# Words in a row that two texts may have in common, and the share of the shorter one's that makes it a repetition.
_RUN_WORDS, _REPEATED_SHARE = 4, 0.6
_SCALE = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_NUMBER_WORDS = {
    word: float(n)
    for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "seventy": 70.0, "eighty": 80.0, "ninety": 90.0}
_TENS = frozenset(range(20, 100, 10))
_SUFFIX = re.compile(r"(?<=[^\W\d_]{2})(?:'|-[a-z]).*$")
_COMMON = frozenset(
    "a an the and or but of to in on at by for with from as is are was were be been being it its this that these those "
    "you your i my we our they their he she his her can may might will would should could do does did has have had "
    "not no also such so than then there here which who what when where how if into about up out more most some any "
    "other one very much many each both while".split()
)


def coverage(sentence: str, text: str) -> float:
    """The share, in [0, 1], of the sentence's words that the text has too, by how they begin; common words left out."""
    sentence_stems, text_stems = _stems(sentence), _stems(text)
    return len(sentence_stems & text_stems) / len(sentence_stems) if sentence_stems else 0.0


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _COMMON}


def repeats(first: str, second: str) -> bool:
    """Whether one of two texts says most of the other word for word, as copies, versions and excerpts do."""
    return says_most_of(first, second) or says_most_of(second, first)


def says_most_of(text: str, other: str) -> bool:
    """Whether a text says most of another word for word."""
    runs, other_runs = _word_runs(text), _word_runs(other)
    return bool(other_runs) and len(runs & other_runs) >= _REPEATED_SHARE * len(other_runs)


def _word_runs(text: str) -> set[tuple[str, ...]]:
    """All that stands in the text of so many words in a row; of a shorter text, all of it."""
    words = _WORD.findall(text.lower())
    return {tuple(words[n : n + _RUN_WORDS]) for n in range(max(1, len(words) - _RUN_WORDS + 1))} if words else set()


def echoes(question: str, reply: str) -> bool:
    """Whether a reply says the question again, and not a word more.

    One that answers in some of the question's words ("High wages.") doesn't, nor does one with a yes or no before it.
    """
    question_words, reply_words = set(normalise(question).split()), set(normalise(reply).split())
    return reply_words <= question_words and bool(reply_words) and _stems(reply) == _stems(question)


def contradiction(sentence: str, evidence: str, context: str = "") -> str:
    """What the sentence names that neither the evidence nor the context does, in words; "" for nothing."""
    source_text = f"{evidence} {context}"
    source_numbers = _numbers(source_text)
    numbers = [
        number
        for number in _numbers(sentence)
        if not any(_is_about(number, source_number) for source_number in source_numbers)
    ]
    numbers += _years(sentence) - source_numbers
    if numbers:
        return f"number {min(numbers):g}"
    return next((f"name {name}" for name in _names(sentence) if not _mentions(source_text, name)), "")


def disagree(first: str, second: str) -> bool:
    """Whether each of two sentences gives a number, or a name, that the other lacks."""
    return all(_has_other_numbers(a, b) for a, b in ((first, second), (second, first))) or (
        _has_other_names(first, second) and _has_other_names(second, first)
    )


def _has_other_numbers(text: str, other: str) -> bool:
    """Whether a text gives a number, or a year, that the other doesn't."""
    other_numbers = _numbers(other, above=0)
    unmatched = (
        not any(_is_about(n, other_number) or _is_about(other_number, n) for other_number in other_numbers)
        for n in _numbers(text, above=0)
    )
    return any(unmatched) or not _years(text) <= other_numbers


def _has_other_names(text: str, other: str) -> bool:
    return any(not _mentions(other, name) for name in _names(text))


def _numbers(text: str, above: float = MAX_SMALL_COUNT) -> set[float]:
    """The numbers of a text, however written: "2,000,000", "2 million" and "two million" are one."""
    # "two hundred and fifty" is one number
    text = _SPAN.sub(r"\1\2 \1\3", text.lower().replace("hundred and ", "hundred ")).replace("-", " ")
    numbers: set[float] = set()
    number, previous_word = None, ""
    for word in re.findall(r"\d+(?:[.,]\d+)*|[a-z]+", text):
        extended = _extended(number, previous_word, word)
        if extended is None:
            if number is not None:
                numbers.add(number)
            extended = _value(word)
        number, previous_word = extended, word
    if number is not None:
        numbers.add(number)
    # Small counts ("two prizes", "the 3 methods") sum up what a text lists without saying the number.
    return {number for number in numbers if number > above}


def _extended(number: float | None, previous_word: str, word: str) -> float | None:
    """The number that goes on with this word: "twenty" with "five", "two hundred" with "ten", "32" with "thousand"."""
    if number is None:
        return None
    if word in _SCALE:
        return number * _SCALE[word]
    addend = _NUMBER_WORDS.get(word, 0)
    limit = 100 if previous_word == "hundred" else 10 if _NUMBER_WORDS.get(previous_word) in _TENS else 0
    return number + addend if 0 < addend < limit else None


def _is_about(stated: float, actual: float) -> bool:
    """Whether `actual` may be told as `stated`: 5,509,733 is 5.5 million, 82.9 is more than 80."""
    return abs(stated - actual) <= ROUNDING * abs(actual)


def _value(word: str) -> float | None:
    if word[0].isdigit():
        digits = word.replace(",", "")
        return float(digits) if digits.count(".") <= 1 else None
    return _NUMBER_WORDS.get(word)


def _years(text: str) -> set[float]:
    """The years of a text, which nobody rounds."""
    return {float(year) for year in _YEAR.findall(_SPAN.sub(r"\1\2 \1\3", text))}


def _names(sentence: str) -> list[str]:
    """Capitalised words, but for the first word of the sentence and "I"."""
    words = [match.group() for match in _WORD.finditer(sentence)]
    return [word for word in words[1:] if word[0].isupper() and len(word) > 1 and word.lower() not in _COMMON]


def _mentions(text: str, name: str) -> bool:
    """Whether a word of the text begins as the name does: "Kenyan" and "Kenya's" are mentions of "Kenya"."""
    return any(word.startswith(_bare(name)[:5]) for word in map(_bare, _WORD.findall(text)))


def _bare(name: str) -> str:
    """The name without what hangs on it: "Peru's", "UK-wide"."""
    return _SUFFIX.sub("", name.replace("’", "'")).lower()
