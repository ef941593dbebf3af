"""Looks a question up in parts, where one search can't find all that its answer needs.

"Where was the director of Jaws born?" needs a text that names the director, and another one on that person, which the
question doesn't name. The model writes up to three look-ups as JSON (prompts/plan.j2). Those that stand alone are the
first round; the model answers the ones that others wait for from what they found, and the answers take the place of #1
and #2 in the second round. The best passages of each look-up and of the question itself take the places in turn.

Asked for where a judge surely sees such a question, and then at least two look-ups have to be written; or always, by
`turn.plan`, and then one that repeats the question is no plan. A plan that is none, a stop or an error leaves the turn
as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from threading import Event

from assistant.budget import fit
from assistant.errors import SequiturError
from assistant.retrieve.search import look
from assistant.steps import relevance
from assistant.strategies.concat import FACTOID_ROOM
from assistant.text import finished, normalise
from assistant.types import Completion, Confidence, Options, Parts, Passage, Query, Turn
from assistant.unknown import says_unknown

WHOLE = "The question was looked up as a whole: "
MOST = 3
_ROOM = 100
# Passages that a look-up is answered from where another one waits for its answer.
_READ = 3


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds to `queries`, and puts what the look-ups find among `passages`."""
    yield turn
    try:
        if not _is_wanted(turn, parts):
            return
        lookups: dict[int, str] = {}
        for piece in _written(turn, parts, stop):
            if piece.read:
                yield turn.reading(piece)
            lookups = planned(piece.text, turn.question)
        if lookups and not stop.is_set():
            yield from _looked_up(lookups, turn, parts, stop)
    except SequiturError as error:
        yield turn.told(f"{WHOLE}{error}")


def planned(written: str, question: str) -> dict[int, str]:
    """The look-ups by their numbers; none where this is no plan of at least two that differ from the question.

    A look-up that waits for itself or for a later one can't be made, and is left out.
    """
    try:
        plan = json.loads(written)
    except ValueError:
        return {}
    found: dict[int, str] = {}
    said = {normalise(question)}
    for n in range(1, MOST + 1):
        text = plan.get(str(n)) if isinstance(plan, dict) else None
        text = " ".join(text.split()) if isinstance(text, str) else ""
        if normalise(text) and normalise(text) not in said and all(one in found for one in _awaited(text)):
            found[n] = text
            said.add(normalise(text))
    return found if len(found) > 1 else {}


def _is_wanted(turn: Turn, parts: Parts) -> bool:
    if parts.settings.turn.plan == "always":
        return True
    return parts.multi_hop is not None and parts.multi_hop.needs_several(turn.question)


def _written(turn: Turn, parts: Parts, stop: Event) -> Iterator[Completion]:
    always = parts.settings.turn.plan == "always"
    messages, _ = fit("plan", parts.llm, _ROOM, question=turn.question, maybe_one=always)
    # a grammar of JSON allows any white space, and small models may fall into writing nothing else
    options = Options(max_tokens=_ROOM, stop=("\n",), schema=_schema(1 if always else 2))
    return parts.llm.stream(messages, options, stop)


def _schema(least: int) -> str:
    """The JSON schema of a plan with at least so many look-ups."""
    names = [str(n) for n in range(1, MOST + 1)]
    return json.dumps(
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in names},
            "required": names[:least],
            "additionalProperties": False,
        }
    )


def _looked_up(lookups: Mapping[int, str], turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """The turn after each round."""
    found = {n: _searched(n, text, turn, parts, stop) for n, text in lookups.items() if not _awaited(text)}
    yield _with(turn, found)
    awaited = sorted({one for text in lookups.values() for one in _awaited(text)} & found.keys())
    if stop.is_set() or not awaited:
        return
    answers = _answers({n: found[n] for n in awaited}, parts, stop)
    if stop.is_set():
        return
    for n, text in lookups.items():
        if _awaited(text) and _awaited(text) <= answers.keys():
            found[n] = _searched(n, _filled(text, answers), turn, parts, stop)
    yield _with(turn, dict(sorted(found.items())))


def _awaited(lookup: str) -> set[int]:
    """The numbers of the look-ups whose answers it waits for."""
    return {n for n in range(1, MOST + 1) if f"#{n}" in lookup}


def _filled(lookup: str, answers: Mapping[int, str]) -> str:
    for n, answer in answers.items():
        lookup = lookup.replace(f"#{n}", answer)
    return lookup


def _searched(n: int, text: str, turn: Turn, parts: Parts, stop: Event) -> Turn:
    """A turn of its own for a look-up, with the passages that it finds."""
    alone = Turn(text, question=text, choices=turn.choices)
    *_, alone = relevance.run(look(alone, parts, Query(f"look-up {n}", text)), parts, stop)
    return alone


def _answers(found: Mapping[int, Turn], parts: Parts, stop: Event) -> dict[int, str]:
    """What the model reads in the best passages of each, where it reads an answer there."""
    prompts = [
        fit(
            "factoid/concat", parts.llm, FACTOID_ROOM,
            facts=(), question=one.question, passages=one.passages[:_READ],
        )[0]
        for one in found.values()
    ]  # fmt: skip
    replies = parts.llm.complete(prompts, Options(max_tokens=FACTOID_ROOM), stop)
    texts = (finished(reply, "factoid").strip().rstrip(".") for reply in replies)
    return {n: text for n, text in zip(found, texts, strict=True) if text and not says_unknown(text)}


def _with(turn: Turn, found: Mapping[int, Turn]) -> Turn:
    """The turn with the best passages of each look-up and its own, one of each after the other."""
    rankings = [(*one.passages, *one.reserve) for one in (*found.values(), turn)]
    order = _merged(chain.from_iterable(zip_longest(*rankings)))
    k = turn.choices.k
    return turn.grow(
        queries=(*turn.queries, *chain.from_iterable(one.queries for one in found.values())),
        passages=order[:k],
        reserve=order[k : max(k, len(turn.passages) + len(turn.reserve))],
        confidence=_surer(turn.confidence, [one.confidence for one in found.values()]),
    )


def _merged(passages: Iterator[Passage | None]) -> tuple[Passage, ...]:
    """Each passage once, in the order in which they come, with all that found it."""
    first: dict[str, Passage] = {}
    for one in filter(None, passages):
        known = first.get(one.id, one)
        first[one.id] = replace(known, found_by=tuple(dict.fromkeys((*known.found_by, *one.found_by))))
    return tuple(first.values())


def _surer(own: Confidence | None, others: Sequence[Confidence | None]) -> Confidence | None:
    """How sure the set is: as the question's own passages make it, or as the weakest look-up does, whichever is more.

    Half of the look-ups is no answer; but a plan that fails takes nothing from what was found without it.
    """
    known = [one for one in others if one]
    if own is None or not known:
        return own
    return max(own, min(known, key=lambda one: one.value), key=lambda one: one.value)
