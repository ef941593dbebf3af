"""How fast an engine writes: an LLM wrapped around an LLM that times its replies."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from threading import Event, Lock
from time import perf_counter

from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Completion, Messages, Options

REPLIES = 20
# Shorter ones, such as a label or a title, are over before their pace can be told.
_MIN_TOKENS = 8


class ReplySpeed:
    """The last replies of an engine. Safe to use from several threads."""

    def __init__(self) -> None:
        self._replies: deque[tuple[int, float]] = deque(maxlen=REPLIES)
        self._lock = Lock()

    def add(self, tokens: int, seconds: float) -> None:
        """Note a reply of so many tokens, of which all but the first took so many seconds."""
        if tokens >= _MIN_TOKENS and seconds > 0:
            with self._lock:
                self._replies.append((tokens - 1, seconds))

    @property
    def replies(self) -> int:
        """How many replies it is told from."""
        return len(self._replies)

    @property
    def per_second(self) -> float:
        """Tokens written a second, over all of them together; 0 where there is none yet."""
        with self._lock:
            seconds = sum(seconds for _, seconds in self._replies)
            return sum(tokens for tokens, _ in self._replies) / seconds if seconds else 0.0


class TimedLLM(Wrapper):
    """Passes everything on to `llm`, and records in `speed` how fast its streamed replies are written."""

    def __init__(self, llm: LLM, speed: ReplySpeed) -> None:
        super().__init__(llm)
        self._speed = speed

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it. The consumer's own time between two pieces is not counted."""
        has_begun, seconds, untimed_tokens, last_completion = False, 0.0, 0, Completion("")
        start_time = perf_counter()
        try:
            for piece in self._llm.stream(messages, options, stop):
                if has_begun:
                    seconds += perf_counter() - start_time
                elif piece.text:
                    has_begun, untimed_tokens = True, max(piece.completion_tokens - 1, 0)
                last_completion = last_completion if piece.read else piece
                yield piece
                start_time = perf_counter()
        finally:
            self._speed.add(last_completion.completion_tokens - untimed_tokens, seconds)
