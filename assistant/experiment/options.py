"""Options that the commands which measure or train on data share, and the sample that they choose.

A dataclass of such options is a part of a command: see `assistant.commands.option_groups`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from typer import Option

from assistant.experiment.datasets import Question, read_questions, sample

T = TypeVar("T")

Corpus = Annotated[Path, Option(help="Passages: a .jsonl[.gz] file of {id, title, contents}.")]
Questions = Annotated[Path, Option(help="Questions: a .jsonl[.gz] file of {id, question, answers, gold}.")]
Limit = Annotated[int | None, Option(min=1, help="Take a sample of this size.", show_default="all")]
Seed = Annotated[int, Option(help="Seed of all that is drawn at random, such as the sample.")]
Skip = Annotated[
    int, Option(min=0, help="Leave out the first so many of what is drawn, so that two samples share nothing.")
]
Jobs = Annotated[
    int, Option(min=1, help="Rows that are made in parallel, in one batch of the model; llm.slots at most.")
]
Out = Annotated[Path, Option("--out", help="The folder for rows and results; a run that is there is continued.")]
OutOrDefault = Annotated[
    Path | None,
    Option(
        "--out", help="The folder for rows and results; a run that is there is continued.", show_default="data folder"
    ),
]
ShownPassages = Annotated[int, Option("--k", min=1, help="Passages shown.")]
Rounds = Annotated[
    int,
    Option(
        "--loops",
        min=1,
        max=5,
        help="How often a draft is written and searched for (the X of Generate-Retrieve-Generate).",
    ),
]
Iterations = Annotated[int, Option(min=1, max=5, help="Rounds of ITRG's loops (its T); they never end early here.")]
OneLoop = Annotated[
    str,
    Option(
        help="How passages are found: by the 'question' alone, by a 'draft' alone, by the question and a paragraph that"
        " the model writes ('generate'), by the question and then 'ranked' by relevance, or by a loop."
    ),
]
Thresholds = Annotated[
    tuple[float, ...],
    Option(
        "--threshold",
        help="Confidences below which a set counts as unanswerable, to choose from: each half of the questions is"
        " measured with the one that is best on the other half; may be repeated.",
        show_default="0.5 to 0.9",
    ),
]
Corpora = Annotated[list[Path] | None, Option(help="Passages that pairs point into; may be given again.")]
BootstrapSeed = Annotated[int, Option(help="Seed of the bootstrap.")]
Split = Annotated[str, Option(help="Only pairs of this split, where the file names any.")]
AsJson = Annotated[bool, Option("--json", help="Print the summary as JSON.")]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The options that choose a sample of the data."""

    limit: Limit = None
    seed: Seed = 0
    skip: Skip = 0

    def draw(self, items: Sequence[T]) -> list[T]:
        """The sample, in an order that depends only on the seed."""
        return sample(items, self.limit, self.seed, self.skip)

    def draw_or_all(self, items: Sequence[T]) -> list[T]:
        """The sample; without a limit, all items in their own order."""
        return self.draw(items) if self.limit or self.skip else list(items)

    def draw_questions(self, file: Path) -> dict[str, Question]:
        """The sample of a file of questions, by their ids."""
        return {question.id: question for question in self.draw(read_questions(file))}
