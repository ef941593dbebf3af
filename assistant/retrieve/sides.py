"""The sides of a comparison, as questions of their own.

Hardly any passage tells of Norway and Sweden both, and a search for the two at once may find what tells of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.types import Query

_NAME = r"[^\W\d_a-z][\w'’-]*(?:\.? (?:of (?:the )?)?[^\W\d_a-z][\w'’-]*)*"
# What was matched whole is not tried again shorter, which would take long where many words have capitals.
_WHOLE = rf"(?>{_NAME}\b)"
_THING = rf"(?>{_NAME}|\w[\w'’-]*)"
_JOINT = r",? (?:or|vs\.?|versus) (?:the |an? |in )?"
_EITHER = re.compile(rf"(?:{_NAME}, )*{_THING}{_JOINT}{_THING}")
_AND = r" (?:and|with|to|from) (?:the |an? |that of )?"
_PAIRS = (
    re.compile(rf"(?P<one>{_WHOLE}) (?:compare|differ)s?{_AND}(?P<other>{_THING})"),
    re.compile(
        rf"\b(?:compare[ds]?|comparisons?|differences?|differs?|both)\b.*?"
        rf"(?P<one>{_THING}){_AND}(?P<other>{_THING})"
    ),
    re.compile(
        rf"(?P<one>{_WHOLE}).*\b(?:than|compared (?:to|with)) (?:in |the |(?:that|those) (?:of|in) )?(?P<other>{_NAME})"
    ),
    re.compile(rf"(?P<one>{_NAME}){_AND}(?P<other>{_WHOLE}).*\b(?:differ|compare|common|same|alike|similar)\b"),
)
# What leads to the second thing of two, up to where that begins.
_JOINS = re.compile(
    r"(?:,|,? (?:or|vs\.?|versus|and|with|to|from|than|compared (?:to|with))) "
    r"(?:(?:in|on|of|for|the|an?|that|those) )*\Z"
)
# Questions for which of several has more of something, as they are asked of one of them.
_MORE = r"(?:more|fewer|less|(?:the )?(?:most|fewest|least)) (?!than\b)(?P<of>[^,:?]+?)"
_AMOUNTS = (
    rf"(?:which|who|what)\b[^,:]* (?P<has>has|have) {_MORE}[,:]? {{thing}}",
    rf"{{thing}}[,:]? (?:which|who|what)\b[^,:]* (?P<has>has|have) {_MORE}",
    rf"(?P<has>does|do) {{thing}} have {_MORE}",
    rf"(?:(?:where|in which\b[^,:]*) )?(?:is|are) (?P<there>there) {_MORE},? {{thing}}",
)
_BEHIND = re.compile(r" (?:per|in|on|for|of|at|with|by)\b.*")
_COUNTED = re.compile(r"(?:[^s]s|people|children|men|women)\Z", re.IGNORECASE)
# Words that questions begin with, which a capital makes no names.
_FIRST = re.compile(
    r"(?:which|what|who|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|should|would|will|may|of|in|"
    r"on|between|both|compare|tell|give|name|list|explain|describe|the|a|an|and|if|so|then)\b",
    re.IGNORECASE,
)
# What stands beside an "or" or an "and" without being a thing: "two or three tips", "an hour or so", "both he and I".
_NO_THING = frozenset(
    "one two three four five six seven eight nine ten so not no yes more most less least fewer before after now later "
    "then than never ever always sometimes often i you he she it we they me him her us them should can could would "
    "will may might must is are was were do does did has have had all any none some both either neither other others "
    "another if when how why what where who which whose over under above below in on at by for from of to with "
    "without during be being maybe rather better worse right wrong there here away up down".split()
)
_MOST = 4
# A longer message is no comparison that anyone meant, and looking for one in it may take seconds.
_LONGEST = 400


def sides(question: str) -> tuple[Query, ...]:
    """The question asked of each thing that it compares alone; none where it compares nothing."""
    if len(question) > _LONGEST:
        return ()
    places = _places(question[:1].lower() + question[1:] if _FIRST.match(question) else question)
    things = [question[start:end] for start, end in places]
    if len({thing.lower() for thing in things}) < 2:
        return ()
    return tuple(Query(thing, _of_amounts(thing, _asked_of(thing, question, places))) for thing in things[:_MOST])


def _places(question: str) -> list[tuple[int, int]]:
    """Where the compared things stand, in order."""
    listed = _EITHER.search(question)
    things = re.split(rf"{_JOINT}|, ", listed.group()) if listed else []
    if listed and _are_things(things):
        starts = [listed.start() + at for at in _starts(listed.group(), things)]
        return [(start, start + len(thing)) for start, thing in zip(starts, things, strict=True)]
    found = (pair.search(question) for pair in _PAIRS)
    pair = next((one for one in found if one and _are_things(one.group("one", "other"))), None)
    return [pair.span("one"), pair.span("other")] if pair else []


def _are_things(words: Sequence[str]) -> bool:
    return not any(word.lower() in _NO_THING or word.isdigit() for word in words)


def _starts(text: str, things: list[str]) -> list[int]:
    starts, after = [], 0
    for thing in things:
        starts.append(text.index(thing, after))
        after = starts[-1] + len(thing)
    return starts


def _asked_of(thing: str, question: str, places: list[tuple[int, int]]) -> str:
    """The question with `thing` at the first of the places, and without the others and what joins them to it."""
    (start, end), *others = places
    for other_start, other_end in reversed(others):
        joint = _JOINS.search(question, end, other_start)
        question = question[: joint.start() if joint else other_start] + question[other_end:]
    return " ".join((question[:start] + thing + question[end:]).split())


def _of_amounts(thing: str, question: str) -> str:
    """The question, where it is for more of something, as one for how much: a text on one thing says no more than that.

    Measured in docs/results/questions.md: "How many people does China have?" finds what "Does China have more people?"
    doesn't.
    """
    forms = (form.format(thing=rf"(?:in )?(?P<thing>(?:the |an? )?{re.escape(thing)})") for form in _AMOUNTS)
    found = next(filter(None, (re.fullmatch(rf"{form}\W*", question, re.IGNORECASE) for form in forms)), None)
    if not found:
        return question
    known = found.groupdict()
    many = "many" if _COUNTED.search(_BEHIND.sub("", known["of"])) else "much"
    if "there" in known:
        return f"How {many} {known['of']} {'are' if many == 'many' else 'is'} there in {known['thing']}?"
    does = "do" if known["has"].lower() in ("do", "have") else "does"
    return f"How {many} {known['of']} {does} {known['thing']} have?"
