"""Looks up a thing that a question describes instead of naming it: "the capital of the country with the most people".

No passage tells of both, and a small model takes what it is shown for the answer. So the description is asked for
first, and its name is put in; the reply says so in a sentence with a source. Where that sentence has no support, the
question stays as it was, and the page says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant import citations, variants
from assistant.steps import digest, relevance
from assistant.text import appended
from assistant.types import Answer, Inner, Parts, Turn

_KIND = r"(?:country|nation|state|continent)\b"
_MOST = r"(?:\w+[- ])?(?:(?:most|least) [\w-]+|(?!best|worst|latest|honest|modest)\w+est)"
_WHERE = r"(?: (?:in|on|of) (?:the )?\w[\w'’-]*(?:(?-i: [A-Z])\w+)*)?(?: by [\w ]+)?"
# "the country with the most people", up to where the question goes on; what it says of "my" country, facts tell.
_CLAUSE = r" (?:with|where|that|which|whose|in which|having) (?:(?! and (?:how|what|wh\w+)\b)[^,;:?.!])+"
_DESCRIBED = re.compile(
    rf"\bthe {_MOST} {_KIND}{_WHERE}|(?:\bthe )?\b\w+['’]s {_MOST} {_KIND}|\bthe {_KIND}{_CLAUSE}", re.IGNORECASE
)
_OWN = re.compile(r"\b(?:i|me|my|mine|we|(?-i:us)|our|you|your)\b", re.IGNORECASE)
# What leads to a description that is not itself asked for, as in "What is the largest country?".
_LEADS = re.compile(
    r"\b(?:of|in|for|from|to|at|by|with|about|near|than|like|into|speak|rules?|leads?|runs?|governs?|borders?|bordering)$"
    r"|^(?:and |so |but )?(?:how(?: \w+)?|where|when|why) (?:is|was)$",
    re.IGNORECASE,
)
_LONGEST = 400
_WORDS = 8
NOT_FOUND = "What “{}” is was not found, so the answer may tell of another."


def described(question: str) -> str:
    """The description in a question that asks for something else of what it describes; "" where there is none."""
    for found in _DESCRIBED.finditer(question[:_LONGEST]):
        if _LEADS.search(question[: found.start()].strip()) and not _OWN.search(found.group()):
            return found.group().strip()
    return ""


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `inner` and the `question` with its name instead of the description, where the library tells it."""
    description = described(turn.question) if parts.settings.turn.inner else ""
    if not description:
        yield turn
        return
    inner = _looked_up(description, turn, parts, stop)
    if inner is None:
        yield turn if stop.is_set() else turn.told(NOT_FOUND.format(description))
        return
    question = turn.question.replace(description, inner.name, 1)
    yield turn.grow(inner=inner, question=question, rewritten=True)


def tell(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - nothing to wait for
    """Adds to an answer from passages what its question described, with the source of that."""
    told = turn.answer and turn.citations and not turn.answer.unknown and turn.choices.form == "chat"
    if turn.inner is None or turn.answer is None or not told or stop.is_set():
        yield turn
        return
    known = {one.passage_id: one.n for one in turn.citations}
    n = known.get(turn.inner.passage.id, max(known.values()) + 1)
    here = replace(turn.inner.citation, n=n)
    sentence = replace(turn.inner.sentence, citations=(n,))
    others = [one for one in turn.passages if one.id != turn.inner.passage.id]
    passages = turn.passages if len(others) < len(turn.passages) else (*others, turn.inner.passage)
    text, _ = appended(turn.answer.text.rstrip(), f"{sentence.text} [{n}]")
    answer = replace(turn.answer, text=text)
    yield turn.grow(
        answer=answer, passages=passages, sentences=(*turn.sentences, sentence), citations=(*turn.citations, here)
    )


def _looked_up(description: str, turn: Turn, parts: Parts, stop: Event) -> Inner | None:
    """What is described, as far as a passage backs it."""
    question = f"What is {description}?"
    choices = replace(turn.choices, form="factoid", loop="retrieve_then_generate", strategy="concat")
    asked = Turn(question, question=question, choices=choices)
    search, answer = variants.step("loops", choices.loop), variants.step("strategies", choices.strategy)
    for step in (search, relevance.run, digest.run, answer):
        *_, asked = step(asked, parts, stop)
        if stop.is_set() or (asked.confidence and asked.confidence.level == "none"):
            return None
    name = asked.answer.text.strip(" .") if asked.answer and not asked.answer.unknown else ""
    if not name or len(name.split()) > _WORDS:
        return None
    said = Answer(f"{description[0].upper()}{description[1:]} is {name}.")
    *_, asked = citations.settle(asked.grow(answer=said, choices=replace(choices, form="chat")), parts, stop)
    if not asked.citations:
        return None
    source = asked.citations[0]
    passage = next(one for one in asked.passages if one.id == source.passage_id)
    return Inner(description, name, asked.sentences[0], source, passage)
