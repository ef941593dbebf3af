"""What is measured of systems side by side: a row for each system and question, and what all rows say.

{"id": "q1", "system": "langchain_rag", "question": "...", "reply": "...", "gold": ["..."], "unanswerable": false,
 "held": true, "exact": false, "f1": 0.31, "shown": ["p1", "p7"], "gold_shown": true, "all_gold_shown": true,
 "cited": [], "gold_cited": false, "declined": null, "own": null, "passed": null, "failed": "", "seconds": 8.1,
 "prompt_tokens": 640, "completion_tokens": 31, "gigabytes": 0.2, "versions": {"langchain-core": "1.8.3"},
 "learning": 3.1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from assistant.evaluation.reply_marks import has_match
from assistant.evaluation.scenarios import Scenario
from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, exact_match, mean, paired_difference, share_passed, token_f1
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from benchmarks.peers.asked import OURS, SystemProcess
from benchmarks.peers.stand import tokens
from benchmarks.peers.wire import Document, Stand


@dataclass(frozen=True, slots=True)
class Work:
    """A question, the documents that it is about, and, where a scenario has them, the marks of its reply."""

    question: Question
    documents: tuple[Document, ...]
    must: tuple[str, ...] | None = None
    must_not: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadReply:
    """What a person found in a system's reply to the question `id`: whether it admits that it doesn't know."""

    system: str
    id: str
    admitted: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of each row that it `applies_to`: a share where all are True or False, else a mean."""

    applies_to: Callable[[Row], bool]
    value: Callable[[Row], float]


def _answerable(row: Row) -> bool:
    return bool(row["gold"])


MEASURES: dict[str, Measure] = {
    "gold answer in the reply": Measure(_answerable, lambda row: row["held"]),
    "exact match": Measure(_answerable, lambda row: row["exact"]),
    "F1": Measure(_answerable, lambda row: row["f1"]),
    "a gold document among those shown": Measure(_answerable, lambda row: row["gold_shown"]),
    "every gold document among those shown": Measure(_answerable, lambda row: row["all_gold_shown"]),
    "a gold document cited": Measure(_answerable, lambda row: row["gold_cited"]),
    "unanswerable: admitted, by reading": Measure(
        lambda row: row["unanswerable"] and row["admitted"] is not None, lambda row: row["admitted"]
    ),
    "unanswerable: told to be from no document": Measure(
        lambda row: row["unanswerable"] and row["own"] is not None, lambda row: row["own"]
    ),
    "unanswerable: a document cited all the same": Measure(
        lambda row: row["unanswerable"] and row["own"] is not None, lambda row: bool(row["cited"])
    ),
    "answerable: declined all the same, by reading": Measure(
        lambda row: _answerable(row) and row["admitted"] is not None, lambda row: row["admitted"]
    ),
    "as the scenario's marks ask": Measure(lambda row: row["passed"] is not None, lambda row: row["passed"]),
    "seconds": Measure(lambda _: True, lambda row: row["seconds"]),
}
_MEDIANS = ("seconds", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Systems:
    """All systems that take part, and what they share."""

    processes: Mapping[str, SystemProcess]
    stand: Stand


@dataclass(frozen=True)
class Peers(Task[tuple[str, Work], Systems]):
    """Every question to every system: the `items` have the system's name and the question's id as key.

    `admissions` says of a reply, by the same key, whether it admits that it doesn't know, as a person read it.
    """

    items: Mapping[tuple[str, str], tuple[str, Work]]
    run_claim: Row
    admissions: Mapping[tuple[str, str], bool]
    seed: int = 0

    def claim(self) -> Row:
        """See `Task`; systems and questions may be added later."""
        return self.run_claim

    def key(self, row: Row) -> tuple[str, str]:
        """See `Task`."""
        return row["system"], row["id"]

    def row(self, item: tuple[str, Work], resources: Systems) -> Row:
        """See `Task`.

        Raises:
            DataError: the system can't take the documents.
        """
        name, work = item
        system, tokens_before = resources.processes[name], tokens(resources.stand)
        reply = system.ask(work.documents, work.question.text)
        read, written = (end - start for end, start in zip(tokens(resources.stand), tokens_before, strict=True))
        return row_of(name, work, reply, read, written) | {
            "versions": system.learning_report.get("versions", {}),
            "learning": round(system.learning_report.get("seconds", 0.0), 2),
        }

    def summarise(self, rows: Rows) -> Summary:
        """Each measure by system with its 95 % interval, and ours less theirs, paired, on what both were asked."""
        all_rows = [{**rows[key], "admitted": self.admissions.get(key)} for key in self.items]
        rows_by_system = {
            name: [row for row in all_rows if row["system"] == name] for name in dict.fromkeys(_names(all_rows))
        }
        our_rows = {row["id"]: row for row in rows_by_system.get(OURS, [])}
        return {
            "systems": {name: self._summary(system_rows) for name, system_rows in rows_by_system.items()},
            f"{OURS} less": {
                name: self._differences(our_rows, system_rows)
                for name, system_rows in rows_by_system.items()
                if name != OURS and our_rows
            },
            "versions": {
                name: system_rows[-1]["versions"]
                for name, system_rows in rows_by_system.items()
                if system_rows[-1]["versions"]
            },
        }

    def _summary(self, rows: Sequence[Row]) -> Summary:
        summary: Summary = {"questions": len(rows), "failed": sum(bool(row["failed"]) for row in rows)}
        for name, measure in MEASURES.items():
            if values := [measure.value(row) for row in rows if measure.applies_to(row)]:
                summary[name] = share_passed(list(map(bool, values))) if _is_share(values) else _mean(values, self.seed)
        summary |= {f"{name}, median": float(median(row[name] for row in rows)) for name in _MEDIANS}
        return {**summary, "gigabytes, most": max(row["gigabytes"] for row in rows)}

    def _differences(self, our_rows: Mapping[str, Row], their_rows: Sequence[Row]) -> Summary:
        differences: Summary = {}
        for name, measure in MEASURES.items():
            row_pairs = [(our_rows[row["id"]], row) for row in their_rows if row["id"] in our_rows]
            values = [
                (measure.value(a), measure.value(b))
                for a, b in row_pairs
                if measure.applies_to(a) and measure.applies_to(b)
            ]
            if values:
                our_values, their_values = zip(*values, strict=True)
                differences[name] = {**paired_difference(our_values, their_values, self.seed), "n": len(values)}
        return differences


def row_of(name: str, work: Work, reply: Mapping[str, Any], read: int, written: int) -> Row:
    """What is kept of a system's reply; one that failed is an empty one."""
    question, text = work.question, str(reply.get("text", ""))
    shown_ids, cited_ids = (list(reply.get(key, ())) for key in ("shown", "cited"))
    return {
        "id": question.id,
        "system": name,
        "question": question.text,
        "reply": text,
        "gold": list(question.answers),
        "unanswerable": question.unanswerable,
        "held": bool(answer_recall(text, question.answers)),
        "exact": bool(exact_match(text, question.answers)),
        "f1": token_f1(text, question.answers),
        "shown": shown_ids,
        "gold_shown": _any_of(question.gold, shown_ids),
        "all_gold_shown": bool(question.gold) and set(question.gold) <= set(shown_ids),
        "cited": cited_ids,
        "gold_cited": _any_of(question.gold, cited_ids),
        "declined": reply.get("declined"),
        "own": reply.get("own"),
        "passed": passed(work, text),
        "failed": reply.get("failed", ""),
        "seconds": round(reply.get("seconds", 0.0), 3),
        "prompt_tokens": read,
        "completion_tokens": written,
        "gigabytes": round(reply.get("peak", 0) / 1e9, 3),
    }


def passed(work: Work, reply: str) -> bool | None:
    """Whether the reply is as the scenario's marks ask, citations left aside; None where it has none."""
    if work.must is None:
        return None
    return all(has_match(reply, mark) for mark in work.must) and not any(
        has_match(reply, mark) for mark in work.must_not
    )


def of_scenario(scenario: Scenario) -> Work:
    """A scenario as work: what is asked about its documents."""
    documents = tuple(Document(document.name, document.name, document.text) for document in scenario.documents)
    question = Question(scenario.id, scenario.ask, (), (), scenario.expect == "no_answer")
    return Work(question, documents, scenario.must, scenario.must_not)


def interleaved(systems: Sequence[str], works: Iterable[Work]) -> dict[tuple[str, str], tuple[str, Work]]:
    """Every question to every system before the next question, each time another system first."""
    return {
        (name, work.question.id): (name, work)
        for n, work in enumerate(works)
        for name in (*systems[n % len(systems) :], *systems[: n % len(systems)])
    }


def _any_of(gold: Sequence[str], document_ids: Sequence[str]) -> bool:
    return any(id_ in gold for id_ in document_ids)


def _names(rows: Iterable[Row]) -> list[str]:
    return [row["system"] for row in rows]


def _is_share(values: Sequence[float]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _mean(values: Sequence[float], seed: int) -> dict[str, float]:
    return {**mean(values, seed), "n": len(values)}
