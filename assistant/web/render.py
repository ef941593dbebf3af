"""Turns, facts, documents and conversations as HTML. Every template escapes whatever text it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assistant.llm.known_models import KnownModel
from assistant.registry import variants
from assistant.runs import Place, Run
from assistant.steps import recall
from assistant.store.conversations import Conversation, is_temporary
from assistant.types import Fact, Turn, new_id, now
from assistant.web import cited, confidence, highlight, reply
from assistant.wording.views import (
    STEP_TITLES,
    ballots,
    events,
    headline,
    incomplete_notice,
    link_of,
    passed_over,
    unsourced_kind,
    wait_progress,
)
from ptkb.store import comparison_key

FOLDER = Path(__file__).parent / "templates"

# What the queries of a turn are called on the page.
QUERY_NAMES = {"question": "your question", "draft": "the draft", "document": "the text so far"}


def render(name: str, /, **values: Any) -> Markup:
    """`templates/<name>.html.j2`, escaped.

    Raises:
        jinja2.UndefinedError: a variable of the template was not given; the message names it.
    """
    return Markup(_environment().get_template(f"{name}.html.j2").render(**values))  # noqa: S704 - autoescaped


def transcript(
    conversation: Conversation,
    facts: Sequence[Fact],
    place: Place | None = None,
    models: Sequence[KnownModel] = (),
) -> Markup:
    """A conversation. The `facts` that are stored tell what is remembered, has changed since, and can be replaced.

    `place` is where something is being written: that of a turn is left open for it. `models` can answer again.
    """
    at = conversation.position_of(place.of) if place and place.of else -1
    return render("transcript", conversation=conversation, place=place, at=at, **_shared_values(facts, models))


def answering(conversation: str, turn: Turn, replaced_turn: str = "") -> Markup:
    """The turn that is being written, at the end or in the place of the turn `replaced_turn` that it answers again."""
    return render("answering", conversation=conversation, turn=turn, into=replaced_turn, **_shared_values(turn.known))


def running(conversation: str, run: Run) -> Markup:
    """What is being written, where it belongs."""
    if not run.place.compared:
        return answering(conversation, run.turn, run.place.of)
    sides = tuple({**run.turns, run.turn.id: run.turn}.values())
    return render(
        "comparing", conversation=conversation, place=run.place, sides=sides, **_shared_values(run.turn.known)
    )


def notice(text: str, kind: str = "error") -> Markup:
    """A banner: an error stays until it is closed, a "note" goes by itself. Equal texts make different HTML."""
    return render("notice", text=text, kind=kind, nonce=new_id())


def day(moment: datetime) -> str:
    """A date, by this computer's clock, as a list of conversations shows it."""
    local = moment.astimezone()
    days = (now().astimezone().date() - local.date()).days
    names = {0: "Today", 1: "Yesterday"}
    return names.get(days) or f"{local.day} {local:%b %Y}"


def size(size: int) -> str:
    """A number of bytes, such as "1.2 GB"."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def percent(share: float) -> int:
    """A share as whole percents, between 0 and 100."""
    return round(100 * min(max(share, 0.0), 1.0))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(headline=headline, waits=wait_progress, day=day, percent=percent)
    environment.filters.update(plain=reply.plain, reply=reply.html, linked=reply.linked)
    environment.filters.update(lead=_lead, size=size, moment=datetime.fromisoformat)
    environment.filters.update(
        ballots=ballots, events=events, instead=unsourced_kind, missing=incomplete_notice, passed_over=passed_over
    )
    environment.filters.update(verdict=confidence.verdict, sure=confidence.number, about_set=confidence.about_set)
    environment.globals.update(
        copies=cited.citation_texts,
        place=cited.location_text,
        about_passage=confidence.about_passage,
        sources=highlight.sources,
        link_of=link_of,
        query_names=QUERY_NAMES,
        step_names=STEP_TITLES,
        with_id=_with_id,
        key=comparison_key,
        ways=_strategy_variants,
        way=_strategy_variant,
        search=_loop_variant,
        grouped=_grouped,
        is_temporary=is_temporary,
    )
    return environment


def _shared_values(facts: Iterable[Fact], models: Sequence[KnownModel] = ()) -> dict[str, Any]:
    """What templates are told beside turns: facts by their ids, the keys that equal statements share, and models."""
    stored = {fact.id: fact for fact in facts}
    return {"stored": stored, "known": {comparison_key(fact.text) for fact in stored.values()}, "models": models}


def _grouped(facts: Sequence[Fact]) -> dict[str, list[Fact]]:
    """Facts by what they are about, for people."""
    return {field.capitalize(): members for field, members in recall.grouped(facts).items()}


def _lead(turn: Turn) -> Markup:
    """What a reply says of the facts that it lists."""
    return reply.plain(recall.lead(turn))


def _with_id(items: Iterable[Any], item_id: str) -> Any:
    return next((item for item in items if item.id == item_id), None)


def _strategy_variants() -> list[variants.Variant]:
    return variants.menu("strategies")


def _strategy_variant(strategy: str) -> variants.Variant:
    return variants.described("strategies", strategy)


def _loop_variant(loop: str) -> variants.Variant:
    return variants.described("loops", loop)
