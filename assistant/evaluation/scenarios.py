"""Measures whole turns as people type them, each judged by its scenario's own marks.

A scenario has what a person would have: facts, what was said before, and documents of their own, which lie in a library
of their own that is searched beside the usual one and removed afterwards. One scenario, a line of the file:

    {"id": "d07", "kind": "constraint", "facts": ["I can't swim."], "history": [["Hello", "Hello!"]],
     "documents": [{"name": "trip.txt", "text": "..."}], "ask": "What should I do?", "expect": "answer",
     "must": ["walk|market"], "must_not": ["snorkel"]}

and one row of the results, where `why` is empty if it passed:

    {"id": "d07", "passed": false, "why": "The reply has 'snorkel'.", "answer": "Go snorkelling. [1]",
     "citations": [{"n": 1, "passage_id": "...", "title": "trip", "quote": "..."}], "origin": "passages",
     "seconds": 9.1}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from assistant import turn as flow
from assistant.chat import PartsSource
from assistant.errors import DataError, FactError, SequiturError
from assistant.evaluation.reply_marks import Pattern, has_match, shares_by_kind
from assistant.experiment.datasets import Record, StrictRecord
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields, non_default_fields
from assistant.library.index import add_documents
from assistant.library.shelves import is_library, library_folder, own_library, remove_library
from assistant.settings import Settings
from assistant.text.markers import extract_markers as without_markers
from assistant.types import Choices, Exchange, Fact, Turn, new_id, now
from assistant.wording.replies import fixed
from ptkb.store import validated

ExpectedReply = Literal["answer", "no_answer", "uncited", "either"]
# How the assistant knows the facts: they are stored, or stated in the message itself, or in a message before it.
FactPlacement = Literal["stored", "in_message", "in_earlier_message"]


def _fact(text: str) -> str:
    try:
        return validated(text)
    except FactError as error:
        raise ValueError(str(error)) from error


Text = Annotated[str, Field(min_length=1)]


class Document(StrictRecord):
    """A document of the user's own: its file name, whose ending says how it is read, and its text."""

    name: Text
    text: Text


class Scenario(StrictRecord, Record):
    """One utterance with all that a turn knows beforehand, and the marks that its reply is judged by.

    Results are told by `kind`, whatever name the file gives it.
    `must` and `must_not` are regular expressions, searched for in the reply whatever the case. `expect` is "answer"
    (with citations), "no_answer" (nothing cited), "uncited" (a reply without citations), or "either".
    """

    id: Text
    kind: Text
    facts: tuple[Annotated[str, AfterValidator(_fact)], ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    documents: tuple[Document, ...] = ()
    ask: Text
    expect: ExpectedReply
    must: tuple[Pattern, ...] = ()
    must_not: tuple[Pattern, ...] = ()
    no_such, what, give = "no scenario", "scenarios", "a file of {id, kind, ask, expect, ...} lines"


def read_scenarios(path: Path) -> dict[str, Scenario]:
    """The scenarios of a JSONL file by their ids.

    Raises:
        DataError: the file or a line can't be used, or an id is there twice.
    """
    by_id: dict[str, Scenario] = {}
    for n, scenario in enumerate(Scenario.read(path), 1):
        if scenario.id in by_id:
            raise DataError(f"{path.name}, line {n}, repeats the id '{scenario.id}'; ids have to be unique.")
        by_id[scenario.id] = scenario
    return by_id


def place_facts(scenario: Scenario, where: FactPlacement) -> Scenario:
    """The scenario with its facts stored, as it is, or stated in its conversation instead."""
    facts_text = " ".join(scenario.facts)
    if where == "stored" or not facts_text:
        return scenario
    if where == "in_message":
        return scenario.model_copy(update={"facts": (), "ask": f"{facts_text} {scenario.ask}"})
    exchange = (facts_text, fixed("acknowledged").text)
    return scenario.model_copy(update={"facts": (), "history": (exchange, *scenario.history)})


@dataclass(frozen=True)
class Scenarios(Task[Scenario, PartsSource]):
    """The `items`, of the file `scenarios`; a user of each scenario and of this `folder` alone has its documents.

    `facts` says how the assistant knows the scenarios' facts.
    """

    title = "Scenarios"
    scenarios: Path
    items: Mapping[str, Scenario]
    choices: Choices
    model: str
    folder: Path
    facts: FactPlacement = "stored"

    def claim(self) -> Row:
        """See `Task`."""
        return claim_of_fields(self, "scenarios", "model") | non_default_fields(self, "facts") | asdict(self.choices)

    def row(self, item: Scenario, source: PartsSource) -> Row:
        """See `Task`.

        Raises:
            DataError: a document can't be read; the message names it.
        """
        # after a kill its own documents are found again
        user = f"scenario {sha256(str(self.folder.resolve()).encode()).hexdigest()} {item.id}"
        with _documents(item, user, source.settings):
            turn = _run(_start(item, self.choices), source, user)
        reasons = find_problems(item, turn)
        titles = {passage.id: passage.full_title for passage in turn.passages}
        return {
            "id": item.id,
            "passed": not reasons,
            "why": " ".join(reasons),
            "answer": turn.answer.text if turn.answer else "",
            "citations": [
                {"n": c.n, "passage_id": c.passage_id, "title": titles.get(c.passage_id, ""), "quote": c.quote}
                for c in turn.citations
            ],
            "origin": turn.answer.origin if turn.answer else "",
            "seconds": round(turn.seconds, 3),
        }

    def summarise(self, rows: Rows) -> Summary:
        """The share that passed, over all and by kind in the file's order, with Wilson's 95 % intervals."""
        seconds = [rows[scenario_id]["seconds"] for scenario_id in self.items]
        shares = shares_by_kind((scenario.kind, rows[name]["passed"]) for name, scenario in self.items.items())
        return {**shares, "seconds": {"median": median(seconds), "slowest": max(seconds)}}

    def details(self, summary: Summary, run: Run[str]) -> str:  # noqa: ARG002 - the signature is Task's
        """Every reply in full beside its verdict."""
        return "\n".join(_answer(scenario, run.rows[scenario_id]) for scenario_id, scenario in self.items.items())


def _run(turn: Turn, source: PartsSource, user: str) -> Turn:
    """The turn at its end; one that a person could mend the cause of has failed, and a bug ends the run."""
    try:
        with source.lent(user, turn.choices) as parts:
            *_, turn = flow.run(turn, parts, Event())
    except SequiturError as error:
        return replace(turn, status="failed", error=str(error))
    return turn


def _start(scenario: Scenario, choices: Choices) -> Turn:
    moment = now()
    # as the conversation keeps them: without their markers
    history = (Exchange(said, said, without_markers(reply, max_number=0).text) for said, reply in scenario.history)
    facts = (Fact(new_id(), text, moment, moment) for text in scenario.facts)
    return Turn(scenario.ask, tuple(history), tuple(facts), choices)


@contextmanager
def _documents(scenario: Scenario, user: str, settings: Settings) -> Iterator[None]:
    """The scenario's documents as this user's own, for as long as the block lasts."""
    library = own_library(user)
    try:
        with TemporaryDirectory() as folder:
            paths = [Path(folder, Path(document.name).name) for document in scenario.documents]
            for path, document in zip(paths, scenario.documents, strict=True):
                path.write_text(document.text, encoding="utf-8")
            for outcome in add_documents(library, paths, settings, uploaded=True) if paths else ():
                if outcome.status == "skipped":
                    problem = f"the document {outcome.name} can't be used ({outcome.reason}); mend it."
                    raise DataError(f"Scenario {scenario.id}: {problem}")
        yield
    finally:
        if is_library(library_folder(library, settings)):
            remove_library(library, settings)


def find_problems(scenario: Scenario, turn: Turn) -> list[str]:
    """What is wrong with the turn by the scenario's marks, a sentence each; nothing if it passes."""
    reply = turn.answer.text if turn.answer else ""
    if turn.status == "failed":
        return [f"The turn failed: {turn.error}"]
    if not reply.strip():
        return ["There is no reply."]
    problems = []
    if scenario.expect == "answer" and not turn.citations:
        problems.append("Nothing is cited.")
    if scenario.expect in {"no_answer", "uncited"} and turn.citations:
        problems.append(f"{len(turn.citations)} citation(s), where none should be.")
    problems += [f"The reply lacks '{pattern}'." for pattern in scenario.must if not has_match(reply, pattern)]
    problems += [f"The reply has '{pattern}'." for pattern in scenario.must_not if has_match(reply, pattern)]
    return problems


def _answer(scenario: Scenario, row: Row) -> str:
    context = [
        *(f"Fact: {fact}" for fact in scenario.facts),
        *(f"Before: {utterance} / {reply}" for utterance, reply in scenario.history),
        *(f"Document: {document.name}" for document in scenario.documents),
        f"Asked: {scenario.ask}",
    ]
    context += [f"**{row['why']}**"] * bool(row["why"])
    context += [f"[{citation['n']}] {citation['title']}: {citation['quote']}" for citation in row["citations"]]
    heading = f"### {scenario.id}: {'passed' if row['passed'] else 'FAILED'}"
    bullets = (f"- {' '.join(line.split())}" for line in context)
    reply = (f"> {line}" for line in row["answer"].splitlines())
    return "\n".join([heading, *bullets, "", *reply, ""])
