"""Sentences of a text with their positions, cutting texts at a sentence's end, and normalising them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator

from syntok import segmenter

from assistant.types import Completion, Passage, Span

# The end of a sentence that the model could not finish.
ELLIPSIS = " …"
_ENDS = ".!?。！？؟۔।:)\"'”’*"
# syntok knows European punctuation; these end sentences in Chinese and Japanese (without a space), Arabic, Urdu, Hindi.
_ENDING = 12  # characters that an ending has at most, with quotes, brackets and stars
_CLOSING = "\"'”’»)]*_"
_PIECE = re.compile(r"[^。！？؟۔।]+[。！？؟۔।]*")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_US = re.compile(r"(?<![\w.$])(?:US\b|U\.S\.(?:A\.)?)(?![\w$]|\.\w| dollars?\b| Virgin\b)")
_CONTROL = dict.fromkeys((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F), " ")
# Those that syntok doesn't know.
_REFERRING = re.compile(r"(?<!\d )\b(?:chs?|eqs?|nos|paras?|pp|sec)\.$", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
# What can't be seen: white space, and characters without width.
_BLANK = "".join(char for char in map(chr, range(0x3001)) if char.isspace()) + "\u200b\u200c\u200d\u2060\ufeff"


def sentences(text: str) -> list[Span]:
    """The sentences of `text` in order, without the white space around them. A line break always ends one."""
    spans, start = list[Span](), 0
    for line in text.split("\n"):
        spans += _in_line(text, start, start + len(line)) if line else ()
        start += len(line) + 1
    return spans


def words(text: str) -> list[str]:
    """The runs of letters, digits and underscores in `text`."""
    return _WORDS.findall(text)


def quote(text: str, span: Span) -> str:
    """The characters of `text` in `span`."""
    return text[span.start : span.end]


def with_usa(text: str) -> str:
    """The text with "US" as "USA", which no search takes for "us"; a text all in capitals is left as it is."""
    return text if text.isupper() else _US.sub("USA", text)


def surrounding_sentences(text: str, near: Span, words: int) -> Span:
    """The span of whole sentences around `near`, as many on both sides as fit into so many words, but at least one."""
    spans = sentences(text) or [Span(0, len(text))]
    counts = [len(quote(text, span).split()) for span in spans]
    middle = next((n for n, span in enumerate(spans) if span.end > near.start), len(spans) - 1)
    start, end = middle, middle + 1
    while True:
        before = start > 0 and sum(counts[start - 1 : end]) <= words
        after = end < len(spans) and sum(counts[start : end + 1]) <= words
        if not before and not after:
            return Span(spans[start].start, spans[end - 1].end)
        if before and (not after or middle - start < end - 1 - middle):
            start -= 1
        else:
            end += 1


def shorten(text: str, limit: int) -> str:
    """`text` cut to at most `limit` characters, at the end of a sentence where one fits, else of a word."""
    if len(text) <= limit:
        return text
    fitting = [span.end for span in sentences(text) if span.end <= limit]
    if fitting:
        return text[: fitting[-1]]
    return text[: max(limit - 1, 0)].rsplit(" ", 1)[0].rstrip() + "…"


def whole_sentences(text: str) -> str:
    """`text` without a last sentence that was broken off, unless it is the only one."""
    spans = sentences(text)
    if len(spans) < 2 or text[spans[-1].end - 1] in _ENDS:
        return text
    return text[: spans[-2].end]


def ends_a_sentence(text: str) -> bool:
    """Whether a text ends like a sentence, so that it was not broken off."""
    return _closes(text.rstrip(), ".!?。！？")


def finished_text(completion: Completion, form: str) -> str:
    """The text of a completion. A chat answer that ran out of tokens loses its broken last sentence, or ends in "…".

    A text that was cut because it repeated itself, such as an endless list, ends in "…", too.
    """
    text = completion.text.strip()
    if form == "factoid" or text[-1:] in _ENDS or completion.finish not in {"length", "repeated"}:
        return text
    if completion.finish == "repeated":
        return text + ELLIPSIS
    complete = whole_sentences(text)
    return complete if complete != text else text.rpartition(" ")[0].rstrip(",;") + ELLIPSIS


def without_title(text: str, passages: Iterable[Passage]) -> str:
    """The text without the "Title: " that small models copy from the passages in the prompt."""
    for passage in passages:
        text = text.removeprefix(f"{passage.full_title}: ")
    return text


def normalise(text: str) -> str:
    """Lower case, no punctuation, no articles, single spaces, as SQuAD's scoring script compares answers."""
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def clean(text: str) -> str:
    """`text` without control characters and lone surrogates, which neither Lucene nor a tokenizer can take."""
    return text.encode("utf-8", "replace").decode("utf-8").translate(_CONTROL).strip()


def _closes(text: str, marks: str) -> bool:
    """Whether a text ends with one of these marks, ignoring quotes, brackets and stars behind it."""
    return text.rstrip(_CLOSING).endswith(tuple(marks))


def _in_line(text: str, start: int, end: int) -> Iterator[Span]:
    first, text_end = start, start + len(text[start:end].rstrip())
    for paragraph in segmenter.analyze(text[start:end]):
        for tokens in paragraph:
            last = start + tokens[-1].offset + len(tokens[-1].value)
            # syntok also ends sentences at "(official) 62.1%" and at semicolons; without a full stop it goes on.
            closes = _closes(text[max(first, last - _ENDING) : last], ".!?…:") and not _refers(text, first, last)
            if last >= text_end or closes:
                yield from _pieces(text, first, last)
                first = last
    yield from _pieces(text, first, text_end)  # if anything: syntok drops a space without width at the end of a line


def _refers(text: str, start: int, end: int) -> bool:
    """Whether a stretch ends in an abbreviation that belongs to the number behind it, as in "under ch. 48"."""
    return text[end : end + 2].strip().isdigit() and _REFERRING.search(text, start, end) is not None


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    for piece in _PIECE.finditer(text, start, end):
        if stripped := piece.group().strip(_BLANK):
            begin = piece.start() + len(piece.group()) - len(piece.group().lstrip(_BLANK))
            yield Span(begin, begin + len(stripped))
