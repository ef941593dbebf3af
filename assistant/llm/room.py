"""Whether a prompt leaves room for a reply."""

from __future__ import annotations

from assistant.errors import ModelError
from assistant.protocols import LLM


def fitting(tokens: list[int], llm: LLM) -> list[int]:
    """The tokens of a prompt, which have to be fewer than one request of the model may use.

    Raises:
        ModelError: they are not; the message says how many they are.
    """
    check(len(tokens), llm)
    return tokens


def check(tokens: int, llm: LLM) -> None:
    """Refuse a prompt of so many tokens if it leaves no room for a reply.

    Raises:
        ModelError: it leaves none.
    """
    if tokens >= llm.context:
        raise ModelError(
            f"The prompt has {tokens} tokens and {llm.name} is set to {llm.context} a request; shorten it,"
            " or raise llm.context."
        )
