"""Patterns that a reply or a rewrite is judged by, as files of labelled rows have them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


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
