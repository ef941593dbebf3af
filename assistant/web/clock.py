"""Measures one turn from its snapshots: times, tokens, and how it ended."""

from __future__ import annotations

from time import perf_counter

from assistant.types import Tokens, Turn


class Clock:
    """When what of one turn came, in seconds since it began, and what it cost."""

    def __init__(self) -> None:
        self._start_time = perf_counter()
        self._earlier_tokens: Tokens | None = None
        self.first_source: float | None = None
        self.first_word: float | None = None
        self.id = self.error_kind = self.step = ""
        self.status = "stopped"
        self.tokens = Tokens()

    @property
    def elapsed(self) -> float:
        """Seconds until now."""
        return perf_counter() - self._start_time

    def see(self, turn: Turn) -> None:
        """Note what this snapshot has that those before had not."""
        # the second of two that are compared goes on from the first one's snapshot
        self._earlier_tokens = turn.tokens if self._earlier_tokens is None else self._earlier_tokens
        self.id, self.tokens = turn.id, turn.tokens - self._earlier_tokens
        if self.first_source is None and turn.passages:
            self.first_source = self.elapsed
        if self.first_word is None and turn.answer and turn.answer.text:
            self.first_word = self.elapsed
        if turn.status == "failed":
            self.fail("SequiturError")
        elif turn.status != "running":
            self.status = turn.status
        self.step = turn.step or self.step

    def fail(self, kind: str) -> None:
        """Note that it failed, by an error of this kind."""
        self.status, self.error_kind = "failed", kind

    def log_fields(self) -> dict[str, object]:
        """All of it for a log; nothing of what was said."""
        seconds = {"first_source": self.first_source, "first_word": self.first_word, "whole": self.elapsed}
        return {
            "turn": self.id,
            "status": self.status,
            **({"error": self.error_kind, "step": self.step} if self.status == "failed" else {}),
            **{f"{name}_seconds": round(value, 3) for name, value in seconds.items() if value is not None},
            "tokens_read": self.tokens.prompt,
            "tokens_written": self.tokens.completion,
        }
