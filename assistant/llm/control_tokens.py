"""Keeps text of people and documents from being read as control tokens of the chat template."""

from __future__ import annotations

import re

from assistant.types import Messages

# What the templates of Llama, Qwen, SmolLM, Mistral, Gemma and Phi write around a message. A tokenizer turns these
# strings into control tokens wherever they stand, so a passage that contains one could end the user's message.
_CONTROL = re.compile(
    r"<\|(?=[^|<>\s]{1,40}\|>)|<(?=(?:/?s|bos|eos|pad|unk|(?:start|end)_of_turn|/?SYS|</?SYS>)>)|\[(?=/?INST\])"
)


def defuse(text: str) -> str:
    """The text with control strings broken up by a space, and without characters that UTF-8 can't hold."""
    return (
        _CONTROL.sub(lambda match: f"{match.group()[0]} {match.group()[1:]}", text).encode("utf-8", "replace").decode()
    )


def chat_messages(messages: Messages) -> list[dict[str, str]]:
    """The messages as chat templates and servers read them, in which no text can speak for the template."""
    return [{"role": message.role, "content": defuse(message.content)} for message in messages]
