"""Turns, facts, documents and conversations as HTML. Every template escapes whatever text it is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from assistant import variants
from assistant.types import Turn, new_id, now
from assistant.views import headline
from assistant.web import highlight, reply

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
    conversation: str, title: str, turns: list[Turn], feedback: Mapping[str, int], known: set[str]
) -> Markup:
    """A conversation. `known` are the keys of the facts stored, so that offers taken up are shown as such."""
    return render("transcript", conversation=conversation, title=title, turns=turns, feedback=feedback, known=known)


def answering(conversation: str, turn: Turn) -> Markup:
    """The turn that is being written."""
    return render("answering", conversation=conversation, turn=turn, known=set())


def notice(text: str, kind: str = "error") -> Markup:
    """A banner: an error stays until it is closed, a "note" goes by itself. Equal texts make different HTML."""
    return render("notice", text=text, kind=kind, nonce=new_id())


def day(moment: datetime) -> str:
    """A date as a list of conversations shows it."""
    days = (now().date() - moment.date()).days
    names = {0: "Today", 1: "Yesterday"}
    return names.get(days) or f"{moment.day} {moment:%b %Y}"


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
    environment.filters.update(headline=headline, day=day, percent=percent, plain=reply.plain, reply=reply.html)
    environment.globals.update(
        sources=highlight.sources, query_names=QUERY_NAMES, with_id=_with_id, key=_key, ways=_ways
    )
    return environment


def _with_id(things: Iterable[Any], wanted: str) -> Any:
    return next((thing for thing in things if thing.id == wanted), None)


def _ways() -> list[tuple[str, str]]:
    """The strategies, and what each does."""
    return [(name, variants.summary("strategies", name)) for name in variants.names("strategies")]


def _key(text: str) -> str:
    from ptkb.store import key  # noqa: PLC0415 - SQLAlchemy is slow to import

    return key(text)
