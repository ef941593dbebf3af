"""Marks that a reply or a rewrite is judged by, as labelled rows have them, and the shares that pass, by kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator

from assistant.experiment.measures import counted
from assistant.experiment.task import Summary


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"'{text}' is no regular expression ({error})") from error
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


def has(text: str, pattern: str) -> bool:
    """Whether the pattern is somewhere in the text, whatever the case."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def by_kind(passed: Iterable[tuple[str, bool]]) -> Summary:
    """The share that passed, "overall" and in "kinds" in their order, with Wilson's 95 % intervals; "" is no kind."""
    found = [(kind, bool(one)) for kind, one in passed]
    kinds = dict.fromkeys(kind for kind, _ in found if kind)
    return {
        "overall": counted([one for _, one in found]),
        "kinds": {kind: counted([one for of, one in found if of == kind]) for kind in kinds},
    }
