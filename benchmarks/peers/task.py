"""What is measured of systems side by side: a row a system and question, and what all rows say.

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

from assistant.evaluation.reply_marks import has
from assistant.evaluation.scenarios import Scenario
from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, counted, exact_match, mean, paired_difference, token_f1
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from benchmarks.peers.asked import OURS, Asked
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
    """A figure of each row that it is `of`: a share where all are True or False, else a mean."""

    of: Callable[[Row], bool]
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

    asked: Mapping[str, Asked]
    stand: Stand


@dataclass(frozen=True)
class Peers(Task[tuple[str, Work], Systems]):
    """Every question to every system: the `items` have the system's name and the question's id as key.

    `read` says of a reply, by the same key, whether it admits that it doesn't know, as a person read it.
    """

    items: Mapping[tuple[str, str], tuple[str, Work]]
    asked: Row
    read: Mapping[tuple[str, str], bool]
    seed: int = 0

    def claim(self) -> Row:
        """See `Task`; systems and questions may be added later."""
        return self.asked

    def key(self, row: Row) -> tuple[str, str]:
        """See `Task`."""
        return row["system"], row["id"]

    def row(self, item: tuple[str, Work], given: Systems) -> Row:
        """See `Task`.

        Raises:
            DataError: the system can't take the documents.
        """
        name, work = item
        system, before = given.asked[name], tokens(given.stand)
        reply = system.ask(work.documents, work.question.text)
        read, written = (after - since for after, since in zip(tokens(given.stand), before, strict=True))
        return row_of(name, work, reply, read, written) | {
            "versions": system.learned.get("versions", {}), "learning": round(system.learned.get("seconds", 0.0), 2)
        }  # fmt: skip

    def summarise(self, rows: Rows) -> Summary:
        """Each measure by system with its 95 % interval, and ours less theirs, paired, on what both were asked."""
        every = [{**rows[key], "admitted": self.read.get(key)} for key in self.items]
        by_system = {name: [row for row in every if row["system"] == name] for name in dict.fromkeys(_names(every))}
        ours = {row["id"]: row for row in by_system.get(OURS, [])}
        return {
            "systems": {name: self._told(some) for name, some in by_system.items()},
            f"{OURS} less": {name: self._less(ours, some) for name, some in by_system.items() if name != OURS and ours},
            "versions": {name: some[-1]["versions"] for name, some in by_system.items() if some[-1]["versions"]},
        }

    def _told(self, rows: Sequence[Row]) -> Summary:
        found: Summary = {"questions": len(rows), "failed": sum(bool(row["failed"]) for row in rows)}
        for name, measure in MEASURES.items():
            if values := [measure.value(row) for row in rows if measure.of(row)]:
                found[name] = counted(list(map(bool, values))) if _is_share(values) else _mean(values, self.seed)
        found |= {f"{name}, median": float(median(row[name] for row in rows)) for name in _MEDIANS}
        return {**found, "gigabytes, most": max(row["gigabytes"] for row in rows)}

    def _less(self, ours: Mapping[str, Row], theirs: Sequence[Row]) -> Summary:
        found: Summary = {}
        for name, measure in MEASURES.items():
            both = [(ours[row["id"]], row) for row in theirs if row["id"] in ours]
            values = [(measure.value(a), measure.value(b)) for a, b in both if measure.of(a) and measure.of(b)]
            if values:
                mine, other = zip(*values, strict=True)
                found[name] = {**paired_difference(mine, other, self.seed), "n": len(values)}
        return found


def row_of(name: str, work: Work, reply: Mapping[str, Any], read: int, written: int) -> Row:
    """What is kept of a system's reply; one that failed is an empty one."""
    question, text = work.question, str(reply.get("text", ""))
    shown, cited = (list(reply.get(key, ())) for key in ("shown", "cited"))
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
        "shown": shown,
        "gold_shown": _any_of(question.gold, shown),
        "all_gold_shown": bool(question.gold) and set(question.gold) <= set(shown),
        "cited": cited,
        "gold_cited": _any_of(question.gold, cited),
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
    return all(has(reply, one) for one in work.must) and not any(has(reply, one) for one in work.must_not)


def of_scenario(scenario: Scenario) -> Work:
    """A scenario as work: what is asked about its documents."""
    documents = tuple(Document(one.name, one.name, one.text) for one in scenario.documents)
    question = Question(scenario.id, scenario.ask, (), (), scenario.expect == "no_answer")
    return Work(question, documents, scenario.must, scenario.must_not)


def interleaved(systems: Sequence[str], works: Iterable[Work]) -> dict[tuple[str, str], tuple[str, Work]]:
    """Every question to every system before the next question, each time another system first."""
    return {
        (name, work.question.id): (name, work)
        for n, work in enumerate(works)
        for name in (*systems[n % len(systems) :], *systems[: n % len(systems)])
    }


def _any_of(gold: Sequence[str], found: Sequence[str]) -> bool:
    return any(one in gold for one in found)


def _names(rows: Iterable[Row]) -> list[str]:
    return [row["system"] for row in rows]


def _is_share(values: Sequence[float]) -> bool:
    return all(isinstance(value, bool) for value in values)


def _mean(values: Sequence[float], seed: int) -> dict[str, float]:
    return {**mean(values, seed), "n": len(values)}
