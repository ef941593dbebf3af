"""What is answered: replies and their pieces as OpenAI has them, with what Sequitur adds, and errors."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import JSONResponse

from assistant.types import Turn, new_id
from assistant.wording.replies import reply
from assistant.wording.views import as_json

MODEL = "sequitur"
GROUND_KEYS = ("question", "facts", "passages", "citations", "sentences", "confidence", "events")


class Refusal(Exception):  # noqa: N818 - no error of this program, but its answer to one of the client's
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, code: str, wait: int = 0) -> None:
        """`wait` is after how many seconds to try again, 0 where that would not help."""
        super().__init__(message)
        self.status, self.code = status, code
        # OpenAI's own client would ask again by itself
        self.headers = {"Retry-After": str(wait)} if wait else {"x-should-retry": "false"}

    @property
    def body(self) -> dict[str, Any]:
        """The error as OpenAI has it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": None, "code": self.code}}

    def response(self) -> JSONResponse:
        """The whole response."""
        return JSONResponse(self.body, self.status, self.headers)


def models() -> dict[str, Any]:
    """The list of models: ours is the whole turn, whichever language model writes in it."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}]}


@dataclass(frozen=True)
class ReplyFormat:
    """The forms of one reply, which share its id and time."""

    id: str = field(default_factory=lambda: f"chatcmpl-{new_id()}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, turn: Turn) -> dict[str, Any]:
        """The reply in one piece."""
        message = {"role": "assistant", "content": reply(turn.answer), "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head("chat.completion", [choice]), "usage": _usage(turn), "sequitur": _grounds(turn)}

    def first(self) -> str:
        """The event that opens a stream."""
        return self._chunk({"role": "assistant", "content": ""})

    def progress(self, doing: str) -> str:
        """The event that tells what is being done, without any content."""
        return self._chunk({}, sequitur={"progress": doing})

    def settled(self, turn: Turn, with_usage: bool) -> Iterator[str]:
        """The events of a reply that is done: its words, its grounds, and the end."""
        for piece in re.findall(r"\s*\S+\s*", reply(turn.answer)):
            yield self._chunk({"content": piece})
        yield self._chunk({}, "stop", sequitur=_grounds(turn))
        if with_usage:
            yield _event({**self._head("chat.completion.chunk", []), "usage": _usage(turn)})
        yield "data: [DONE]\n\n"

    def failed(self, refusal: Refusal) -> str:
        """The event that ends a stream with an error."""
        return _event(refusal.body)

    def _chunk(self, delta: Mapping[str, str], finish: str | None = None, **extra: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self._head("chat.completion.chunk", [choice]), **extra})

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": MODEL, "choices": choices}


def _grounds(turn: Turn) -> dict[str, Any]:
    """What the reply rests on, with the keys that `ask --json` has, what kind of reply it is, and who wrote it."""
    turn_fields = as_json(turn)
    return {
        **{key: turn_fields[key] for key in GROUND_KEYS},
        "outcome": turn_fields["answer"]["outcome"],
        "model": turn.model,
    }


def _usage(turn: Turn) -> dict[str, int]:
    tokens = turn.tokens
    total = tokens.prompt + tokens.completion
    return {"prompt_tokens": tokens.prompt, "completion_tokens": tokens.completion, "total_tokens": total}


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
