"""What is asked: the body of a request as OpenAI has it, and the utterance and the history in it."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import BaseModel, Field

from assistant.text.markers import extract_markers
from assistant.text.sentences import clean, shorten
from assistant.types import Exchange
from assistant.wording.replies import LABEL

# No step looks further back, nor at more of what was said.
MAX_EXCHANGES, MAX_CHARS = 10, 4000
EXCHANGE_ROLES = ("user", "assistant")


class Part(BaseModel):
    """A part of a message; only text is read."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message. Those of other roles than user and assistant are ignored."""

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
    """A request for a reply. Fields that aren't here, such as the temperature, are ignored: the turn has its own.

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
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def history(self) -> tuple[Exchange, ...]:
        """What was said before the last message of the user: each message with the reply that came right behind it."""
        dialogue = [message for message in self.messages if message.role in EXCHANGE_ROLES]
        user_positions = [position for position, message in enumerate(dialogue) if message.role == "user"]
        earlier = dialogue[: user_positions[-1]] if user_positions else []
        pairs = pairwise(earlier)
        return tuple(
            _exchange(first.text, second.text) for first, second in pairs if (first.role, second.role) == EXCHANGE_ROLES
        )[-MAX_EXCHANGES:]


def _exchange(utterance: str, reply: str) -> Exchange:
    """As the store has it: the reply without its markers and its label."""
    short_utterance = _shortened(utterance)
    return Exchange(
        short_utterance,
        short_utterance,
        extract_markers(_shortened(reply).removeprefix(LABEL).strip(), max_number=0).text,
    )


def _shortened(text: str) -> str:
    return shorten(clean(text[: 2 * MAX_CHARS]), MAX_CHARS)
