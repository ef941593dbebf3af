"""Answers messages about the stored facts, without the language model. Nothing is changed here.

"What do you know about me?" lists all facts, "Forget that I ..." the facts nearest to the message, and "Why do you
think that?" the sources and facts of the last reply. The page has buttons beside each fact; elsewhere a command changes
them. Facts that were only stated in the conversation come before the list; "Forget that I ..." takes those back at
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.protocols import Embedder, Parts
from assistant.types import Answer, Exchange, Fact, Turn
from ptkb.extract import entails
from ptkb.fields import FIELDS, fields_of

NEAREST = 3
NOTHING = "I know nothing about you yet. Tell me about yourself, or add facts under My facts."
UNREAD = "This is a temporary chat: I read nothing of what I know about you."
NO_REPLY = "There is no reply before this one that I could explain."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `answer`, the facts that it lists as `listed`, and the id of the turn that it explains as `about`."""
    turn = replace(turn, question=turn.utterance_in_english)
    if turn.asks == "why":
        yield _grounds(turn)
    elif not turn.known:
        yield _answered(turn, _stated_here(turn) or (UNREAD if turn.temporary else NOTHING))
    elif turn.asks == "forget":
        nearest = _nearest(turn.utterance_in_english, turn.known, parts.embedder)
        question = "Which of these should I forget? Nothing goes before you say so."
        yield _answered(turn, f"{_stated_here(turn)} {question}\n\n{_list(nearest)}".lstrip(), nearest)
    else:
        yield _all_facts(turn, parts.embedder)


def grouped(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """The facts by field, in the order of `FIELDS`, without empty fields; a fact without a field counts as other."""
    groups = {field: [fact for fact in facts if (fact.field or FIELDS[-1]) == field] for field in FIELDS}
    return {field: members for field, members in groups.items() if members}


def lead(turn: Turn) -> str:
    """The answer without the facts that it lists, for a page that shows the facts itself."""
    text = turn.answer.text if turn.answer else ""
    if turn.asks == "recall":
        return text.partition("\n\n")[0]
    return text.removesuffix(_list(turn.listed)).rstrip()


def _all_facts(turn: Turn, embedder: Embedder) -> Turn:
    fields = fields_of([fact.text for fact in turn.known], embedder)
    facts = [fact.in_field(field) for fact, field in zip(turn.known, fields, strict=True)]
    groups = grouped(facts)
    lists = [f"**{field.capitalize()}**\n\n{_list(members)}" for field, members in groups.items()]
    count = "1 thing" if len(facts) == 1 else f"{len(facts)} things"
    ordered = [fact for members in groups.values() for fact in members]
    return _answered(turn, "\n\n".join([f"{_stated_here(turn)} I know {count} about you:".lstrip(), *lists]), ordered)


def _stated_here(turn: Turn) -> str:
    """A sentence on what was stated in the conversation and isn't stored, or on what this message takes back of it."""
    statements = [fact.text for fact in turn.facts if not fact.stored]
    if turn.asks == "forget":
        statements = [text for text in statements if entails(turn.utterance_in_english, text)]
    introduction = (
        "This no longer counts in our conversation" if turn.asks == "forget" else "In this conversation you told me"
    )
    return f"{introduction}: {', '.join(f'“{_line(text)}”' for text in statements)}" if statements else ""


def _nearest(request: str, facts: Sequence[Fact], embedder: Embedder) -> list[Fact]:
    """The facts most similar to what is to be forgotten, the most similar first."""
    vectors = embedder.encode([request, *(fact.in_english for fact in facts)])
    order = (-(vectors[1:] @ vectors[0])).argsort(kind="stable")
    return [facts[index] for index in order[:NEAREST]]


def _grounds(turn: Turn) -> Turn:
    if not turn.history:
        return _answered(turn, NO_REPLY)
    last = turn.history[-1]
    by_id = {fact.id: fact for fact in turn.known}
    facts = [by_id[fact_id] for fact_id in last.reasons if fact_id in by_id]
    paragraphs = list(_sources(last))
    if facts:
        paragraphs += ["It depends on what you told me:", _list(facts)]
    return replace(_answered(turn, "\n\n".join(paragraphs), facts), about=last.turn if last.quotes or facts else "")


def _sources(last: Exchange) -> Iterator[str]:
    if last.quotes:
        yield "My last reply rests on these places in the library:"
        yield "\n".join(f"- {_line(title)}: “{_line(text)}”" for title, text in last.quotes)
    elif last.origin == "model":
        yield "No passage backs my last reply: it is the model's own knowledge, so check it before you rely on it."
    else:
        yield "My last reply rests on no passage of the library."


def _answered(turn: Turn, text: str, facts: Sequence[Fact] = ()) -> Turn:
    return replace(turn, answer=Answer(text, origin="conversation"), listed=tuple(facts))


def _list(facts: Sequence[Fact]) -> str:
    return "\n".join(f"- {_line(fact.text)}{'' if fact.on else ' (switched off)'}" for fact in facts)


def _line(text: str) -> str:
    return " ".join(text.split())
