"""Measures one turn from its snapshots: times, tokens, and how it ended."""

from __future__ import annotations

from time import perf_counter

from assistant.types import Tokens, Turn


class Clock:
    """When what of one turn came, in seconds since it began, and what it cost."""

    def __init__(self) -> None:
        self._begun = perf_counter()
        self._before: Tokens | None = None
        self.source: float | None = None
        self.word: float | None = None
        self.id = self.kind = self.step = ""
        self.status = "stopped"
        self.tokens = Tokens()

    @property
    def whole(self) -> float:
        """Seconds until now."""
        return perf_counter() - self._begun

    def see(self, turn: Turn) -> None:
        """Note what this snapshot has that those before had not."""
        # the second of two that are compared goes on from the first one's snapshot
        self._before = turn.tokens if self._before is None else self._before
        self.id, self.tokens = turn.id, turn.tokens - self._before
        if self.source is None and turn.passages:
            self.source = self.whole
        if self.word is None and turn.answer and turn.answer.text:
            self.word = self.whole
        if turn.status == "failed":
            self.fail("SequiturError")
        elif turn.status != "running":
            self.status = turn.status
        self.step = turn.step or self.step

    def fail(self, kind: str) -> None:
        """Note that it failed, by an error of this kind."""
        self.status, self.kind = "failed", kind

    def figures(self) -> dict[str, object]:
        """All of it for a log; nothing of what was said."""
        seconds = {"first_source": self.source, "first_word": self.word, "whole": self.whole}
        return {
            "turn": self.id,
            "status": self.status,
            **({"error": self.kind, "step": self.step} if self.status == "failed" else {}),
            **{f"{name}_seconds": round(value, 3) for name, value in seconds.items() if value is not None},
            "tokens_read": self.tokens.prompt,
            "tokens_written": self.tokens.completion,
        }
