"""What a model thinks before it replies, which is no part of its reply.

Thinking is switched off where a template knows how. Some templates open a thought whatever they are told, so that a
reply begins in the middle of one, ends it with "</think>", and says nowhere that it began.
"""

from __future__ import annotations

from dataclasses import replace

from assistant.errors import ModelError
from assistant.types import Completion, Options

_OPEN, _CLOSE = "<think>", "</think>"
# What templates that know of thinking are told.
THINKING_OFF = {"enable_thinking": False}


def opens_thought(prompt: str) -> bool:
    """Whether a prompt, as its template has written it, leaves a thought open."""
    return prompt.rstrip().endswith(_OPEN)


def began_in_thought(text: str) -> bool:
    """Whether a reply, of which this much is written, began within a thought that is over by now."""
    thought, close, _ = text.partition(_CLOSE)
    return bool(close) and not thought.lstrip().startswith(_OPEN)


def with_thought_closed(prompt: str) -> str:
    """The prompt with the thought that it leaves open ended at once, so that the model goes on with its reply."""
    return f"{prompt.rstrip()}\n\n{_CLOSE}\n\n" if opens_thought(prompt) else prompt


def reply_of(text: str, *, unopened: bool = False) -> str:
    """What is known of the reply proper, of which this much is written; it may be `unopened`, within a thought."""
    thought, close, reply = text.partition(_CLOSE)
    if close:
        return reply.lstrip()
    text_start = thought.lstrip()
    is_thought = text_start.startswith(_OPEN) or (text_start != "" and _OPEN.startswith(text_start))
    return "" if is_thought or unopened else text


def without_thought(completion: Completion, options: Options) -> Completion:
    """A completion without what its model only thought; what keeps to a schema has no room for a thought.

    Raises:
        ModelError: it is over, and all of it was thought.
    """
    if options.schema:
        return completion
    text = reply_of(completion.text)
    # who asked for an end at some string has no reply to show
    is_over = completion.finish == "length" or (completion.finish == "stop" and not options.stop)
    if is_over and not text and completion.text.strip():
        raise only_thought_error()
    return replace(completion, text=text)


def only_thought_error() -> ModelError:
    """The error for a reply that is nothing but a thought."""
    return ModelError(
        "The model thought for as long as its reply may be; switch thinking off where it runs, or choose a model that"
        " doesn't think."
    )


class ThoughtFilter:
    """Keeps what was only thought out of the replies of a server.

    `unopened` says whether its template opens a thought: then what comes is held back until a thought ends. Where that
    is not known (None), it is learned from the first such reply that gets to the end of its thought. All users share
    what is learned, so a reply that just writes of these tags must not be taken for one.
    """

    def __init__(self) -> None:
        self.unopened: bool | None = None

    def reply_text(self, text: str, *, over: bool, apart: bool) -> str:
        """What is known of the reply proper.

        `over` says that the model has ended it, `apart` that its thought came apart from the text, which holds none.
        """
        if self.unopened is None and _surely_began_in_thought(text):
            self.unopened = True
        return reply_of(text, unopened=bool(self.unopened) and not over and not apart)


def _surely_began_in_thought(text: str) -> bool:
    thought, close, reply = text.partition(_CLOSE)
    return bool(close) and _OPEN not in thought and reply.lstrip(" ").startswith("\n")
