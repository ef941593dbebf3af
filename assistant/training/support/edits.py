"""Small changes that make a true sentence false, and others that leave it true.

Each takes a sentence and a source of chance; what changes it needs something else to put in takes that from a text,
best from the very passage that the sentence is about. None where there is nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

_NAME = re.compile(r"\b[A-Z][\w'’-]+(?:(?: (?:of|the|de|von|van|and))? [A-Z][\w'’-]+)*")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH_OR_WEEKDAY = re.compile(rf"\b(?:{_MONTHS})\b|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
_MONTH_FIRST_DATE = re.compile(rf"\b({_MONTHS}) (\d{{1,2}})(?:, | )(\d{{4}})\b")
_DAY_FIRST_DATE = re.compile(rf"\b(\d{{1,2}}) ({_MONTHS}) (\d{{4}})\b")
_LARGE_NUMBER = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w.,]*\d)")
_PERCENT = re.compile(r"(?<=\d)(?:%| percent| per cent)(?!\w)")
_NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve".split()
_SMALL_NUMBER = re.compile(rf"(?<![\w.,-])(?:1[0-2]|[2-9]|{'|'.join(_NUMBER_WORDS)})(?= [a-z]{{3}})")
_APPOSITION = re.compile(r"(?<=\w), (?:a|an|the) [a-z][^,;.]{2,60},(?= [a-z])")
_BRACKETS = re.compile(r" ?\([^()]*\)")
_ASIDE = re.compile(r",? (?:which|who|where|whose) [^,;.]+(?=[,.])|, (?:including|such as|especially) [^,;.]+(?=[,.])")
_CONNECTIVE = re.compile(r"^(?:However|Moreover|Furthermore|In addition|Also|Thus|Therefore|For example|Indeed), ")
_PRONOUN = re.compile(r"^(?:He|She|It|They|This) (?=(?:is|was|are|were|has|had|can|will|also|\w+ed)\b)")
_AUXILIARY = re.compile(
    r"\b(is|was|are|were|can|could|will|would|has|had|have|should|may|must|did|does|do)\b(?! not\b)"
)
_NEGATION = re.compile(r" not\b|\bno (?=[a-z])|n't\b")
_OPPOSITES = """more less|most least|before after|earlier later|first last|north south|northern southern|east west
eastern western|largest smallest|larger smaller|highest lowest|higher lower|oldest youngest|older younger
increase decrease|increased decreased|increases decreases|increasing decreasing|rise fall|rose fell|rising falling
won lost|win lose|with without|always never|all none|many few|male female|men women|internal external|inside outside
above below|over under|major minor|begin end|began ended|beginning end|start stop|started stopped|allow forbid
allowed forbidden|permitted forbidden|accepted rejected|supported opposed|support oppose|same different
public private|rich poor|wealthy poor|high low|long short|large small|early late|old new|strong weak|left right
upper lower|positive negative|possible impossible|legal illegal|buy sell|bought sold|import export|imports exports
arrived left|joined left|opened closed|open closed|hot cold|warm cold|fast slow|easy difficult|common rare|often rarely
usually rarely|majority minority|maximum minimum|better worse|best worst|majority minority|enter leave
father mother|son daughter|brother sister|husband wife|king queen|he she|his her|simple complex|single multiple
gain loss|gained lost|success failure|successful unsuccessful|victory defeat|defeated supported|true false
dry wet|heavy light|deep shallow|wide narrow|ancient modern|domestic foreign|rural urban|single married
day night|morning evening|summer winter|spring autumn|add remove|added removed|include exclude|included excluded
forward backward|full empty|active passive|able unable|safe dangerous|cheap expensive|gas liquid|solid liquid"""
_OPPOSITE_OF: dict[str, str] = {}
for _word_pair in _OPPOSITES.replace("\n", "|").split("|"):
    _word, _opposite_word = _word_pair.split()
    _OPPOSITE_OF.setdefault(_word, _opposite_word)
    _OPPOSITE_OF.setdefault(_opposite_word, _word)
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(map(re.escape, _OPPOSITE_OF))})\b")

# What makes a claim say more than its source.
_STRONGER = {
    "some": "all", "many": "all", "several": "all", "few": "no", "may": "must", "might": "will", "can": "must",
    "could": "must", "often": "always", "usually": "always", "sometimes": "always", "rarely": "never",
    "generally": "always", "frequently": "always", "mainly": "only", "partly": "wholly", "almost": "exactly",
    "nearly": "exactly", "possibly": "certainly", "probably": "certainly", "part of": "all of", "at least": "exactly",
    "up to": "at least",
}  # fmt: skip
_HEDGE = re.compile(rf"\b(?:{'|'.join(map(re.escape, _STRONGER))})\b")
_PREDICATE_VERB = (
    r"(?:is|was|are|were|has|had|became|won|made|wrote|led|lies|lived|died|began|remained|received|contains)"
)
_NO_PRONOUN = r"(?!(?:It|He|She|They|This|These|That|There)\b)"
_SUBJECT_AND_PREDICATE = re.compile(
    rf"^{_NO_PRONOUN}((?:The )?[A-Z][\w'’-]+(?: (?:of |the )*[A-Z][\w'’-]+)*) ({_PREDICATE_VERB}\b.{{12,}})$"
)
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)][.!?]) (?=[A-Z])")

Edit = Callable[[str, str, Random], str | None]


def another_name(sentence: str, source: str, chance: Random) -> str | None:
    """One name replaced by another of the source."""
    matches = _name_matches(sentence, source)
    sentence_words = set(re.findall(r"\w+", sentence.lower()))
    other_names = [name for name in names(source) if not set(re.findall(r"\w+", name.lower())) & sentence_words]
    return _replaced(sentence, chance.choice(matches), chance.choice(other_names)) if matches and other_names else None


def another_number(sentence: str, source: str, chance: Random) -> str | None:
    """One number, month or day replaced by another of the source, or by one near it."""
    matches = [*_NUMBER.finditer(sentence), *_MONTH_OR_WEEKDAY.finditer(sentence)]
    if not matches:
        return None
    match = chance.choice(matches)
    pattern = _NUMBER if match.group()[0].isdigit() else _MONTH_OR_WEEKDAY
    other_numbers = sorted(
        {number for number in pattern.findall(source) if number not in sentence and len(number) == len(match.group())}
    )
    if other_numbers and chance.random() < 0.6:
        return _replaced(sentence, match, chance.choice(other_numbers))
    return _replaced(sentence, match, _nearby_number(match.group(), chance)) if pattern is _NUMBER else None


def names_exchanged(sentence: str, source: str, chance: Random) -> str | None:
    """Two names of the sentence in each other's place: who does what to whom."""
    matches = _name_matches(sentence, source)
    pairs = [(a, b) for n, a in enumerate(matches) for b in matches[n + 1 :] if _are_apart(sentence, a, b)]
    if not pairs:
        return None
    first, second = chance.choice(pairs)
    return _replaced(_replaced(sentence, second, first.group()), first, second.group())


def _name_matches(sentence: str, source: str) -> list[re.Match[str]]:
    """Matches of names; the first word of a sentence is one where the source has it inside a sentence, too."""
    source_names = set(names(source))
    return [match for match in _NAME.finditer(sentence) if match.start() or match.group() in source_names]


def _are_apart(sentence: str, first: re.Match[str], second: re.Match[str]) -> bool:
    """Whether more than a comma or an "and" stands between two names; a list is true in any order."""
    gap = sentence[first.end() : second.start()]
    return first.group() != second.group() and bool(set(gap.split()) - {",", "and", "or", "&"})


def negated(sentence: str, source: str, chance: Random) -> str | None:  # noqa: ARG001 - the signature is Edit's
    """With a "not" more, or one less."""
    matches = list(_NEGATION.finditer(sentence))
    if matches:
        match = chance.choice(matches)
        return " ".join((sentence[: match.start()] + " " + sentence[match.end() :]).split())
    verbs = list(_AUXILIARY.finditer(sentence))
    return _replaced(sentence, (verb := chance.choice(verbs)), f"{verb.group()} not") if verbs else None


def opposite(sentence: str, source: str, chance: Random) -> str | None:  # noqa: ARG001 - the signature is Edit's
    """One word replaced by what means the contrary: a direction, an order, an amount, an outcome."""
    matches = list(_OPPOSITE.finditer(sentence))
    return _replaced(sentence, (match := chance.choice(matches)), _OPPOSITE_OF[match.group()]) if matches else None


def overstated(sentence: str, source: str, chance: Random) -> str | None:  # noqa: ARG001 - the signature is Edit's
    """More said than the source has: all for some, must for may."""
    matches = list(_HEDGE.finditer(sentence))
    return _replaced(sentence, (match := chance.choice(matches)), _STRONGER[match.group()]) if matches else None


def another_predicate(sentence: str, source: str, chance: Random) -> str | None:
    """The predicate of another sentence of the source, put to the subject of this one."""
    own_match = _SUBJECT_AND_PREDICATE.match(sentence)
    if not own_match:
        return None
    other_matches = [match for text in _SENTENCE_END.split(source) if (match := _SUBJECT_AND_PREDICATE.match(text))]
    predicates = [
        match.group(2)
        for match in other_matches
        if own_match.group(1) not in match.group() and match.group(1) not in sentence
    ]
    return f"{own_match.group(1)} {chance.choice(predicates)}" if predicates else None


def numbers_reworded(sentence: str, chance: Random) -> str:
    """Numbers and dates in another form, each of them as true: "1,234,000" is about 1.2 million."""
    if chance.random() < 0.7:
        sentence = _LARGE_NUMBER.sub(lambda match: _rounded(match.group(), chance), sentence)
    if chance.random() < 0.5:
        sentence = _PERCENT.sub(lambda match: " percent" if match.group() == "%" else "%", sentence)
    if chance.random() < 0.5:
        sentence = _SMALL_NUMBER.sub(lambda match: _respelled_number(match.group()), sentence)
    if chance.random() < 0.5:
        changed = _MONTH_FIRST_DATE.sub(r"\2 \1 \3", sentence)
        sentence = changed if changed != sentence else _DAY_FIRST_DATE.sub(r"\2 \1, \3", sentence)
    return sentence


def _rounded(number: str, chance: Random) -> str:
    """A large number in words, or rounded to two or three figures, with "about" in front where that changed it."""
    value = int(number.replace(",", ""))
    digits = len(str(value)) - chance.choice([2, 3])
    rounded = round(value, -digits) if digits > 0 else value
    prefix = "" if rounded == value else chance.choice(["about ", "around ", "some ", "roughly "])
    for scale, word in ((10**9, "billion"), (10**6, "million")):
        if rounded >= scale and chance.random() < 0.8:
            return f"{prefix}{rounded / scale:.4g} {word}"
    return f"{prefix}{rounded:,}"


def _respelled_number(word: str) -> str:
    return _NUMBER_WORDS[int(word) - 2] if word.isdigit() else str(_NUMBER_WORDS.index(word) + 2)


def rephrased(sentence: str, title: str, chance: Random) -> str | None:
    """Said in other or fewer words, and as true: asides left out, numbers in another form, "it" named by the title."""
    changed = sentence
    for pattern in (_BRACKETS, _ASIDE, _CONNECTIVE, _APPOSITION):
        if chance.random() < 0.8:
            changed = pattern.sub("", changed)
    changed = numbers_reworded(changed, chance)
    if title and _PRONOUN.match(changed) and not changed.startswith("This "):
        changed = _PRONOUN.sub(f"{title} ", changed, count=1)
    changed = " ".join(changed.split())
    changed = changed[:1].upper() + changed[1:]
    return changed if changed != sentence and len(changed.split()) > 4 else None


FALSIFYING_EDITS: tuple[Edit, ...] = (
    another_name, another_name, another_number, another_number, names_exchanged, names_exchanged,
    another_predicate, another_predicate, overstated, overstated, negated, opposite,
)  # fmt: skip


def names(text: str) -> list[str]:
    """The names of a text, as far as capitals tell; each once, in order."""
    occurrences = (
        match.group() for match in _NAME.finditer(text) if match.start() and text[match.start() - 2] not in ".!?"
    )
    return list(dict.fromkeys(occurrences))


def falsified(sentence: str, source: str, chance: Random) -> str | None:
    """The sentence with one change that makes it false, of a kind drawn by chance; None where none fits."""
    for edit in chance.sample(FALSIFYING_EDITS, len(FALSIFYING_EDITS)):
        changed = edit(sentence, source, chance)
        if changed and changed != sentence:
            return changed
    return None


def _replaced(text: str, match: re.Match[str], replacement: str) -> str:
    return text[: match.start()] + replacement + text[match.end() :]


def _nearby_number(number: str, chance: Random) -> str:
    """Another number of the same form: "1,240" may become "1,920", and 1971 some year not far from it."""
    digits = number.replace(",", "")
    if digits.isdigit() and len(digits) == 4 and "," not in number:
        return str(int(digits) + chance.choice([-1, 1]) * chance.randint(1, 40))
    if digits.isdigit() and int(digits) < 20:
        return str(int(digits) + chance.randint(1, 5))
    position = chance.choice([n for n, char in enumerate(number) if char.isdigit()])
    new_digit = chance.choice([digit for digit in "123456789" if digit != number[position]])
    return number[:position] + new_digit + number[position + 1 :]
