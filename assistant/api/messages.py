"""What is asked: the body of a request as OpenAI has it, and the utterance and the history in it."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, Field

from assistant.text.markers import read
from assistant.text.sentences import clean, shorten
from assistant.types import Exchange
from assistant.wording.replies import LABEL

# No step looks further back, nor at more of what was said.
EXCHANGES, CHARS = 10, 4000
PAIR = ("user", "assistant")


class Part(BaseModel):
    """A part of a message; only text is read."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message. Those of other roles than user and assistant are passed over."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None

    @property
    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class StreamOptions(BaseModel):
    """What else a stream tells."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """A request for a reply. Fields that aren't here are passed over, such as the temperature: the turn has its own.

    `collection` is Sequitur's own: which of the user's collections of documents is asked.
    """

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    n: Literal[1] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    collection: str | None = None

    @property
    def utterance(self) -> str:
        """The user's last message, "" where there is none."""
        return next((one.text for one in reversed(self.messages) if one.role == "user"), "")

    @property
    def history(self) -> tuple[Exchange, ...]:
        """What was said before the last message of the user: each message with the reply that came right behind it."""
        talk = [one for one in self.messages if one.role in PAIR]
        asked = [n for n, one in enumerate(talk) if one.role == "user"]
        before = talk[: asked[-1]] if asked else []
        pairs = pairwise(before)
        return tuple(_exchange(one.text, two.text) for one, two in pairs if (one.role, two.role) == PAIR)[-EXCHANGES:]


def _exchange(utterance: str, reply: str) -> Exchange:
    """As the store has it: the reply without its markers and its label."""
    asked = _shortened(utterance)
    return Exchange(asked, asked, read(_shortened(reply).removeprefix(LABEL).strip(), most=0).text)


def _shortened(text: str) -> str:
    return shorten(clean(text[: 2 * CHARS]), CHARS)
