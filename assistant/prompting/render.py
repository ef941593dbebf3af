"""Renders prompts/<name>.j2 into chat messages. A missing variable is an error.

Each message of a template begins with a line `--- system`, `--- user` or `--- assistant`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from assistant.types import Message, Messages, Role

_PACKAGE = Path(__file__).parents[1]
# in an installed package the prompts are inside it, in a checkout beside it
FOLDER = next(folder for folder in (_PACKAGE / "prompts", _PACKAGE.parent / "prompts") if folder.is_dir())
_HEAD = re.compile(r"^--- (system|user|assistant)[ \t]*$", re.MULTILINE)


def render(name: str, **values: Any) -> Messages:
    """The messages of `prompts/<name>.j2`.

    Raises:
        jinja2.UndefinedError: a variable of the template was not given; the message names it.
        jinja2.TemplateNotFound: there is no such prompt.
    """
    text = _environment().get_template(f"{name}.j2").render(**values)
    pieces = _HEAD.split(text)[1:]
    roles, contents = pieces[::2], pieces[1::2]
    return tuple(Message(cast("Role", role), content.strip()) for role, content in zip(roles, contents, strict=True))


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - chat messages, not HTML
        finalize=_defused,
    )


def _defused(value: object) -> object:
    """Text of a user or a document, changed so that it can't begin a message of its own."""
    return _HEAD.sub(r" \g<0>", value) if isinstance(value, str) else value
