"""Whether a prompt leaves room for a reply."""

from __future__ import annotations

from assistant.errors import ModelError
from assistant.protocols import LLM


def fitting(tokens: list[int], llm: LLM) -> list[int]:
    """The tokens of a prompt, which have to be fewer than one request of the model may use.

    Raises:
        ModelError: they are not; the message says how many they are.
    """
    if len(tokens) >= llm.context:
        raise ModelError(
            f"The prompt has {len(tokens)} tokens and {llm.name} is set to {llm.context} a request; shorten it,"
            " or raise llm.context."
        )
    return tokens
