"""Refuses prompts that leave no room for a reply in the model's context."""

from __future__ import annotations

from assistant.errors import ModelError
from assistant.protocols import LLM


def within_context(tokens: list[int], llm: LLM) -> list[int]:
    """The tokens of a prompt, unchanged, if they leave room for a reply.

    Raises:
        ModelError: the prompt fills the model's context; the message says how many tokens it has.
    """
    check_context(len(tokens), llm)
    return tokens


def check_context(tokens: int, llm: LLM) -> None:
    """Refuse a prompt of so many tokens if it leaves no room for a reply.

    Raises:
        ModelError: the prompt fills the model's context.
    """
    if tokens >= llm.context:
        raise ModelError(
            f"The prompt has {tokens} tokens and {llm.name} is set to {llm.context} a request; shorten it,"
            " or raise llm.context."
        )
