"""Measures whether questions are rewritten with what the facts say, or with what was said before.

"My country" is Germany for who lives in Berlin, and "And in Malta?" asks what was asked of Switzerland.

One record: {"facts": ["I live in Berlin."], "question": "How many people live in my country?", "must": ["german"]};
`must` are regular expressions that the rewrite has to hold, whatever the case, `never` such as it must not.
`history` [[said, reply], ...], `never`, `kind`, `id` and `split` may be missing.
One row: {"id", "question", "rewrite", "right"}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assistant.evaluation.reply_marks import Pattern, has_match, shares_by_kind
from assistant.experiment.datasets import of_split, read_models
from assistant.experiment.report import markdown_table
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task
from assistant.protocols import Parts
from assistant.steps import facts, rewrite
from assistant.types import Exchange, Fact, Turn, now


class Pair(BaseModel):
    """A question of a person of whom something is known, and what its rewrite has to say."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    facts: tuple[str, ...]
    question: Annotated[str, Field(min_length=1)]
    must: Annotated[tuple[Pattern, ...], Field(min_length=1)]
    never: tuple[Pattern, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    kind: str = ""
    id: str = ""
    split: str = ""


def read_pairs(path: Path, split: str = "") -> list[Pair]:
    """The pairs of a file, those of one split where one is named; each gets an id.

    Raises:
        DataError: a line can't be used; or there is no pair, or none of the split.
    """
    all_pairs = read_models(path, Pair, "no pair of facts and question")
    identified_pairs = [pair.model_copy(update={"id": pair.id or f"p{n}"}) for n, pair in enumerate(all_pairs, 1)]
    return of_split(identified_pairs, split, path, "pairs", "lines of {facts, question, must}")


@dataclass(frozen=True)
class PersonalRewriting(Task[Pair, Parts]):
    """The rewrites of `items`, which are of the file `pairs`."""

    claim_fields = ("pairs", "model")
    pairs: Path
    items: Mapping[str, Pair]
    model: str

    def row(self, item: Pair, parts: Parts) -> Row:
        """See `Task`."""
        moment = now()
        stored = tuple(Fact(str(n), text, moment, moment) for n, text in enumerate(item.facts))
        turn = Turn(
            item.question, tuple(Exchange(utterance, utterance, reply) for utterance, reply in item.history), stored
        )
        for step in (facts.run, rewrite.run):
            *_, turn = step(turn, parts, Event())
        has_all = all(has_match(turn.question, pattern) for pattern in item.must)
        right = has_all and not any(has_match(turn.question, pattern) for pattern in item.never)
        return {"id": item.id, "question": item.question, "rewrite": turn.question, "right": right}

    def summarise(self, rows: Rows) -> Summary:
        """The share of right rewrites, over all and by kind, with Wilson's 95 % intervals."""
        shares = shares_by_kind((pair.kind, rows[name]["right"]) for name, pair in self.items.items())
        return {"accuracy": shares["overall"].pop("value"), **shares.pop("overall"), **shares}

    def details(self, summary: Summary, run: Run[str]) -> str:  # noqa: ARG002 - the signature is Task's
        """Every rewrite beside its question."""
        rows = [run.rows[pair_id] for pair_id in self.items]
        lines = [[row["question"], row["rewrite"], "yes" if row["right"] else "no"] for row in rows]
        return markdown_table(["question", "rewritten", "right"], lines)
