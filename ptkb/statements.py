"""Finds what a message states about its writer, and says it as a short sentence in the first person.

By patterns (ptkb/words.toml), with precision first: a clause counts only if it opens in the first person with a
predicate that tells something lasting. Questions, hypotheticals, quotations, other people, and what points outside the
sentence ("I like that one") give nothing. What speaks of the writer in other forms is left to `ptkb.told`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from syntok import segmenter

_WORDS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _any(name: str) -> str:
    return f"(?:{'|'.join(_WORDS[name])})"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


MAX_STATEMENT_CHARS = 200
# A message of more sentences than that likely holds a text to work on.
_PASTED = 6
# Of sentences that open so, the patterns know what states something: "But I mean the other one" doesn't.
_I_FIRST = _compiled(r"^(?:[\w']+[,:!.]? ){0,2}I\b")
# Many type a question without its mark.
_ASKS = _compiled(rf"(?:^|[,.;:]\s+){_any('asks')}\b")
_SELF = _compiled(r"\b(?:I|me|my|mine|myself|we|us|our|ours)\b")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|`[^`]*`|(?<!\w)'[^']+'(?!\w)")
_SPELLINGS = tuple(
    (_compiled(pattern), plain)
    for pattern, plain in (
        ("[\u2018\u2019]", "'"),
        (r"\bi ?'?m\b|\bi am\b", "I'm"),
        (r"\bi'?ve\b|\bI have(?= (?:been|just|recently|become|moved)\b)", "I've"),
        (r"\bI(?:'d| would) (?:(?:really|just) )?(?:love|like) to\b", "I'd like to"),
        (r"\b(do|did|ca|wo|is|are|was)n'?t\b", r"\1n't"),
        (r"\bcan ?not\b", "can't"),
        (r"\bdo not\b", "don't"),
        (r"\bi\b", "I"),
    )
)
_SUBJECT = r"(?:also )?(?:I|I'm|I've|I'd|my|we)\b"
_OPENING = _compiled(rf"^(?:{_any('openings')}\b[\s,:!.]*)+")
_GREETED = _compiled(r"^(?:hi|hello|hey)\b")
_JOINTS = _compiled(
    rf"[;:]\s+|\s+[-–—]+\s+|,?\s+(?:and|but|so|because|since|though|which is why)\s+(?={_SUBJECT}|{_any('asks')}\b)"
    rf"|,\s+(?={_SUBJECT}|{_any('asks')}\b)"
)
_REASON = _compiled(
    r"^(?:since|because|as|given(?: that)?|seeing(?: that)?|considering(?: that)?|now that)\s+(?=I\b|my\b)"
)
_ROLE = _compiled(rf"^(?:as|being) (?!an? {_any('no_roles')}\b)(an? [\w' -]{{3,40}}),\s+(?={_any('asks')}\b|I\b|my\b)")
_UNREAL = _compiled(rf"\b{_any('unreal')}\b")
_NO_FACT = _compiled(rf"[()\[\]{{}}<>|\\]|\b(?:{_any('not_so')}|{_any('passing')}|{_any('pointing')})\b")
_TALK = _compiled(rf"^I (?:{_any('adverbs')} )*{_any('talk')}\b")
_FRONT = rf"(?:{_any('adverbs')}\s+)*+"
_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_AGE = rf"{_NUMBER}(?: (?:years?|months?|weeks?))?(?: old)?"
_FACTS = tuple(
    _compiled(pattern)
    for pattern in (
        rf"^I'm {_FRONT}(?!\w+ing\b|(?:to|so|very|too|done|sure|sorry|glad|about|unable|able)\b)\S",
        rf"^I'm {_FRONT}{_any('under_way')}\b",
        rf"^I {_FRONT}{_any('verbs')}(?:\b|$)",
        rf"^I(?: {_FRONT}|(?='))(?:{_any('events')})\b",
        rf"^I ?{_FRONT}{_any('aims')} (?!{_any('no_aims')}\b)\w",
        rf"^My {_any('mine')} (?:is|are|isn't)\b",
        rf"^My (?:\w+ )?{_any('kin')} (?:is|are) (?:{_any('kin_is')}\b|{_AGE}$)",
        rf"^My (?:\w+ )?{_any('body')} (?:has|have|hurts?|aches?|is bad|are bad|is weak)\b",
    )
)
# Two facts in one clause: "I live in Lisbon and work as a nurse", "I'm vegetarian and lactose intolerant".
_TWO_VERBS = _compiled(rf"^(I(?:'m)?\b.+?),? (?:and|but) ((?:{_any('adverbs')} )*{_any('verbs')}\b(?! \w+ing).*)$")
# "I like to cook and bake" is one fact, and so is "I eat and drink well".
_GOVERNED = _compiled(r"^I \w+$|\b(?:like|love|want|plan|hope|going|prefer|hate|need|try|trying) to\b")
_TWO_STATES = _compiled(
    r"^I'm ((?!an? |the |in |on |at |\w+ing )(?:(?!to|of|in|with|for|from|at|on|about)\w+ ?){1,2}) and ((?:\w++ ?)+)$"
)
_TAIL = _compiled(
    r",?\s+(?:again|(?<!right )(?<!just )now|nowadays|these days|any ?more|any ?longer|after all|by the way|btw|though|"
    r"as well|actually|already|please|thanks)$"
)
# How a change, or a turn of phrase, is said plainly; the first that fits is taken.
_CHANGED = r"^(?:I|we)(?:'ve)? (?:just |recently )?"
_WHEN = r"(?: (?:last|this|in|a|two|three|\d+) .*)?$"
_DIETS = "vegan|vegetarian|pescatarian"
_PLAIN = tuple(
    (_compiled(pattern), plain)
    for pattern, plain in (
        (rf"{_CHANGED}moved (?:from .+? )?to (.+?){_WHEN}", r"I live in \1"),
        (rf"{_CHANGED}turned (\d+)(?: .*)?$", r"I'm \1"),
        (rf"{_CHANGED}(?:become|became|gone|went|turned) (?:an? )?({_DIETS}|teetotal){_WHEN}", r"I'm \1"),
        (rf"{_CHANGED}(?:become|became) (an? \w.*?){_WHEN}", r"I'm \1"),
        (r"^I'm (\d{1,3}) years? old$", r"I'm \1"),
        (r"^I no longer (.+)$", r"I don't \1"),
        (r"^I'm no longer (.+)$", r"I'm not \1"),
        (r"^I've (stopped|quit) (.+)$", r"I \1 \2"),
        (r"^I(?:'ve| have) got (.+)$", r"I have \1"),
        (rf"^I'm (not )?an? ({_DIETS})$", r"I'm \1\2"),
        (r"^I (?:do|really|just|currently|now|also) (?=\w)", "I "),
        (r"^I'm (?:just|currently|now|also|actually) ", "I'm "),
        (r"^My (wife|husband|partner) and I have (.+)$", r"I have a \1 and \2"),
        (r"^We have (.+\b(?:child|children|kids?|sons?|daughters?|baby|twins|dogs?|cats?)\b.*)$", r"I have \1"),
        (r"^We live (.+)$", r"I live \1"),
        (r"^(?:I'm (?:called|named)|People call me) (.+)$", r"My name is \1"),
    )
)
_NAMED = re.compile(r"^I'm ([A-Z][\w-]+)(?:,? (?:and )?(?:I'm )?(from [A-Z].*))?$")
# What may stand where a name is given, and is none: "Hi, I'm Italian", "Hello, I'm Vegan".
_DIET = _compiled(_DIETS)
_PEOPLE = _compiled(rf"{_any('peoples')}(?:-{_any('peoples')})*|{_any('faiths')}")


def statements(message: str) -> list[str]:
    """What the message states about its writer, as sentences such as "I'm vegan.", in order and without repeats."""
    texts: dict[str, None] = {}
    for sentence in _sentences(_spelled(message)):
        for text in _in_sentence(sentence):
            texts.setdefault(_as_sentence(text))
    return list(texts)


def unmatched(message: str) -> list[str]:
    """The sentences of a message that speak of their writer and fit no pattern, but may state something all the same.

    None that open with "I", and none of a message that quotes something, or that is so long that it likely holds a text
    of somebody else.
    """
    spelled = _spelled(message)
    all_sentences = list(_sentences(spelled))
    if '"' in spelled or len(all_sentences) > _PASTED:
        return []
    return [
        _as_sentence(sentence.rstrip(" .!…"))
        for sentence in all_sentences
        if _may_state(sentence) and not any(_in_sentence(sentence))
    ]


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _may_state(sentence: str) -> bool:
    asks = sentence.endswith("?") or _ASKS.search(sentence)
    speaks_of_its_writer = _SELF.search(sentence) and not _I_FIRST.match(sentence) and not asks
    is_real = not _UNREAL.search(sentence) and not _NO_FACT.search(sentence)
    return bool(speaks_of_its_writer) and len(sentence) <= MAX_STATEMENT_CHARS and is_real


def _spelled(message: str) -> str:
    text = _QUOTED.sub('"', message.replace("\u2019", "'"))
    for pattern, plain in _SPELLINGS:
        text = pattern.sub(plain, text)
    return text


def _sentences(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for paragraph in segmenter.analyze(line):
            for tokens in paragraph:
                yield line[tokens[0].offset : tokens[-1].offset + len(tokens[-1].value)]


def _in_sentence(sentence: str) -> Iterator[str]:
    if '"' in sentence or len(sentence) > 5 * MAX_STATEMENT_CHARS or _UNREAL.search(sentence):
        return
    greeted, plain = bool(_GREETED.match(sentence)), _REASON.sub("", _OPENING.sub("", sentence))
    role = _ROLE.match(plain)
    clauses = _JOINTS.split(f"I'm {plain[role.start(1) :]}" if role else plain)
    if sentence.endswith("?"):
        clauses.pop()  # the question itself
    for clause in clauses:
        for part in _parts(_stripped(clause), greeted):
            if _is_fact(part):
                yield part


def _stripped(clause: str) -> str:
    previous, text = "", _OPENING.sub("", clause)
    while text != previous:
        previous, text = text, _TAIL.sub("", text.strip(" .,;:!?…)(\t"))
    return text


def _parts(clause: str, greeted: bool) -> list[str]:
    introduction = _NAMED.match(clause)
    if introduction and (greeted or introduction[2]):
        return [_introduced(introduction[1]), *([f"I'm {introduction[2]}"] if introduction[2] else [])]
    verbs, states = _TWO_VERBS.match(clause), _TWO_STATES.match(clause)
    if verbs and not _GOVERNED.search(verbs[1]) and _is_fact(_plain(verbs[1])):
        return [*_parts(verbs[1], greeted), _plain(f"I {verbs[2]}")]
    if states:
        return [_plain(f"I'm {states[1]}"), _plain(f"I'm {states[2]}")]
    return [_plain(clause)]


def _introduced(word: str) -> str:
    if _DIET.fullmatch(word):
        return f"I'm {word.lower()}"
    return f"I'm {word}" if _PEOPLE.fullmatch(word) else f"My name is {word}"


def _plain(clause: str) -> str:
    for pattern, template in _PLAIN:
        match = pattern.match(clause)
        if match:
            return match.expand(template) + clause[match.end() :]
    return clause


def _is_fact(text: str) -> bool:
    if not 4 < len(text) <= MAX_STATEMENT_CHARS or _NO_FACT.search(text) or _TALK.match(text):
        return False
    return any(pattern.match(text) for pattern in _FACTS)
