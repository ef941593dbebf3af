"""Replaces "the 3rd one" by the item of the last reply that it means: small models confuse the first and the third."""

from __future__ import annotations

import re

from assistant.text.sentences import quote, sentences, shorten
from assistant.types import Exchange

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_THINGS = "tip|option|point|item|step|suggestion|idea|choice|recommendation"
# "the third one", "the 3rd tip", "the last of these", "the second?", "option 2"; not "the second world war"
_REFERENCE = re.compile(
    rf"\bthe (?P<nth>{'|'.join(_ORDINALS)}|last|[1-9]\d?(?:st|nd|rd|th))"
    rf"(?: (?:one|{_THINGS})\b| of (?:them|these|those)\b|(?=[?.!,]|$))"
    rf"|\b(?:{_THINGS}|number(?= \d+(?:\W*$|[,?!]))) (?P<number>[1-9]\d?)\b",
    re.IGNORECASE,
)
# A capitalised word that isn't the first word.
_CAPITALISED = re.compile(r"\w\W+[A-Z]\w*\s$")
_BULLET = re.compile(r"^([ \t]*)(?:[-*•]|\d+[.)])[ \t]+(.+)$", re.MULTILINE)
_INLINE = re.compile(r"(?:^|(?<=[\s.]))\(?(\d{1,2})[.)] ")
_AND = re.compile(r"(?:[,;]| and| or)\s*$")
_ENUMERATED = re.compile(r"(?::|\b(?:includes?|including|such as|like|are)) ([^.:;?!\n]+, [^.:;?!\n]+)")
_COMMA = re.compile(r", (?:and |or )?| and | or ")
# More words than this between two commas are a clause, not an item.
_MAX_ITEM_WORDS = 5
# A question that asks for several things: only then does each sentence of the reply count as one of them.
_SEVERAL = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|[2-9]|10|some|any|several|a few) (?:\w+ ){0,2}"
    r"(?:tips|ways|ideas|options|suggestions|recommendations|things|examples|reasons|steps)\b",
    re.IGNORECASE,
)
_MAX_ITEM_CHARS = 160


def spelt_out(utterance: str, last: Exchange) -> str:
    """The utterance with an ordinal replaced by the item of the last reply that it means, in quotes; else unchanged."""
    reference = _REFERENCE.search(utterance)
    if reference is None or _is_a_name(utterance, reference):
        return utterance
    items, index = _items(last), _index(reference)
    if not -len(items) <= index < len(items):
        return utterance
    item = shorten(items[index].replace("**", ""), _MAX_ITEM_CHARS).strip(" .;,")
    return f'{utterance[: reference.start()]}"{item}"{utterance[reference.end() :]}'


def _is_a_name(utterance: str, reference: re.Match[str]) -> bool:
    """Whether the ordinal is a part of a name or a date: "Elizabeth the First", "June the 3rd"."""
    return (reference["nth"] or "")[:1].isupper() or bool(_CAPITALISED.search(utterance[: reference.start()]))


def _index(reference: re.Match[str]) -> int:
    """The index of the item that is meant; -1 for the last."""
    nth = (reference["nth"] or reference["number"]).lower()
    if nth == "last":
        return -1
    return _ORDINALS.index(nth) if nth in _ORDINALS else int(re.sub(r"\D", "", nth)) - 1


def _items(exchange: Exchange) -> list[str]:
    """The items of the reply, if it lists more than one; else nothing."""
    reply = exchange.reply
    sentence_items = _sentences(reply) if _SEVERAL.search(exchange.question) else []
    lists = (_bullets(reply), _numbered(reply), _enumerated(reply), sentence_items)
    return next((items for items in lists if len(items) > 1), [])


def _bullets(reply: str) -> list[str]:
    """Items on lines of their own, without those of nested lists, which are further indented."""
    bullets = [(len(indentation.expandtabs()), item) for indentation, item in _BULLET.findall(reply)]
    outermost = min((depth for depth, _ in bullets), default=0)
    return [item for depth, item in bullets if depth == outermost]


def _numbered(reply: str) -> list[str]:
    """Items numbered from 1 within the text: "1. swimming, 2. yoga and 3. walking"."""
    starts: list[re.Match[str]] = []
    for number in _INLINE.finditer(reply):
        if int(number[1]) == len(starts) + 1:
            starts.append(number)
    ends = [*(number.start() for number in starts[1:]), len(reply)]
    return [_AND.sub("", reply[start.end() : end].strip()) for start, end in zip(starts, ends, strict=False)]


def _enumerated(reply: str) -> list[str]:
    """Items with commas between them: "Its neighbours are Peru, Bolivia and Argentina"."""
    lists = (_COMMA.split(match[1]) for match in _ENUMERATED.finditer(reply))
    return next(
        (items for items in lists if len(items) > 2 and all(len(i.split()) <= _MAX_ITEM_WORDS for i in items)), []
    )


def _sentences(reply: str) -> list[str]:
    """The sentences of the reply, without introductions, which end with a colon."""
    return [text for span in sentences(reply) if not (text := quote(reply, span)).endswith(":")]
