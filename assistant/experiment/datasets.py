"""Reads corpora, questions, queries and qrels, samples them, and places gold passages.

A line holds one record: `{"id", "title", "contents"}` in a corpus, `{"id", "question", "answers": [], "gold": []}`
in a question file, `{"id", "text"}` in a query file, `query 0 passage relevance` in qrels. Files may be gzipped.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from assistant.errors import DataError
from assistant.types import Passage

GoldPlacement = Literal["none", "insert", "first", "last"]
T = TypeVar("T")
M = TypeVar("M")
# One for each model: to make one takes about a millisecond.
_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


class Record(BaseModel):
    """A line of a file, with what messages say of such files; see `read_models` and `of_split`."""

    no_such: ClassVar[str]
    what: ClassVar[str]
    give: ClassVar[str]

    @classmethod
    def read(cls, path: Path, split: str = "") -> list[Self]:
        """The records of a file, or those of this split if one is named.

        Raises:
            DataError: a line is no such record, or there are none.
        """
        return of_split(read_models(path, cls, cls.no_such), split, path, cls.what, cls.give)


class StrictRecord(BaseModel):
    """A record in which unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its accepted answers, of which an `unanswerable` one has none.

    `gold` are the ids of the passages that hold the answer; `weak` says that they were only found by searching for the
    answer's string.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold: tuple[str, ...] = ()
    unanswerable: bool = False
    weak: bool = False


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of passages in a corpus, and those that were asked for, by id."""

    size: int
    passages: Mapping[str, Passage]


def records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON objects of a .jsonl or .jsonl.gz file, each with its position ("corpus.jsonl, line 7").

    Raises:
        DataError: the file can't be read, or a line is not a JSON object.
    """
    for location, line in _lines(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or str(error)
            raise DataError(f"{location}, is not valid JSON ({reason}); mend or remove the line.") from error
        if not isinstance(record, dict):
            raise DataError(f"{location}, is not a JSON object; mend or remove the line.")
        yield location, record


def read_models(path: Path, model: type[M], no_such: str) -> list[M]:
    """Every line of a file, validated as a `model`.

    Raises:
        DataError: a line is invalid ("line 7, is no scenario", with `no_such` for "no scenario"); its first fault is
            named.
    """
    return [validated_record(location, record, model, no_such) for location, record in records(path)]


def of_split(models: Sequence[M], split: str, path: Path, what: str, give: str) -> list[M]:
    """The records of this split, or all if no split is named.

    Raises:
        DataError: there are none: "There are no pairs in x.jsonl; give ..."
    """
    split_records = [record for record in models if split in {"", getattr(record, "split", "")}]
    if not split_records:
        split_note = f" of the split '{split}'" if split else ""
        raise DataError(f"There are no {what}{split_note} in {path}; give {give}.")
    return split_records


def validated_record(location: str, record: dict[str, Any], model: type[M], no_such: str) -> M:
    """One record, validated as a `model`; see `read_models`."""
    try:
        return cast("M", _adapter(model).validate_python(record))
    except ValidationError as error:
        first_error = error.errors()[0]
        field_path = ".".join(str(part) for part in first_error["loc"])
        raise DataError(f"{location}, is {no_such}: '{field_path}': {first_error['msg']}.") from error


def named_passages(rows: Iterable[Mapping[str, Any]], corpora: Sequence[Path]) -> dict[str, Passage]:
    """The passages that records name by `source`, by their ids, as far as they are in these corpora.

    Raises:
        DataError: as `read_corpus`.
    """
    passage_ids = {str(row["source"]) for row in rows if "source" in row}
    return {
        passage_id: passage
        for corpus in corpora
        for passage_id, passage in read_corpus(corpus, passage_ids).passages.items()
    }


def named_passage(location: str, row: Mapping[str, Any], passages: Mapping[str, Passage]) -> Passage:
    """The passage that a record names by `source`.

    Raises:
        DataError: it is in no corpus given.
    """
    passage = passages.get(str(row["source"]))
    if passage is None:
        raise DataError(f"{location}, points to '{row['source']}', which is in no corpus given; add it with --corpus.")
    return passage


def read_corpus(path: Path, wanted_ids: set[str]) -> Corpus:
    """Check every line of a corpus, and keep the passages whose ids are in `wanted_ids`.

    Raises:
        DataError: a line is broken, lacks an id or contents, or repeats an id; or the corpus is empty.
    """
    seen_ids: set[str] = set()
    passages: dict[str, Passage] = {}
    for location, record in records(path):
        passage_id, text = _new_id(location, record, seen_ids), _text(location, record, "contents")
        if passage_id in wanted_ids:
            passages[passage_id] = Passage(passage_id, str(record.get("title") or ""), text, source=path.name)
    if not seen_ids:
        raise DataError(f"The corpus {path} holds no passages; give a file of {{id, title, contents}} lines.")
    return Corpus(len(seen_ids), passages)


def read_questions(path: Path) -> list[Question]:
    """All questions of a file, in its order; an empty list of answers is kept for the caller to count.

    Raises:
        DataError: a line is broken, lacks an id or a question, or repeats an id; or there are no questions.
    """
    seen_ids: set[str] = set()
    questions = [_question(location, record, seen_ids) for location, record in records(path)]
    if not questions:
        raise DataError(f"There are no questions in {path}; give a file of {{id, question, answers, gold}} lines.")
    return questions


def read_queries(path: Path, field: str = "") -> dict[str, str]:
    """Query texts by id. `field` names the text's key; by default the first of text, question, resolved, utterance.

    A text may be empty, as in published topics that some rewrite is missing from; it finds nothing.

    Raises:
        DataError: a line is broken, lacks an id or the field, or repeats an id; or there are no queries.
    """
    seen_ids: set[str] = set()
    queries = {}
    for location, record in records(path):
        usual_keys = (name for name in ("text", "question", "resolved", "utterance") if name in record)
        key = field or next(usual_keys, "text")
        queries[_new_id(location, record, seen_ids)] = (
            record[key] if record.get(key) == "" else _text(location, record, key)
        )
    if not queries:
        raise DataError(f"There are no queries in {path}; give a file of {{id, text}} lines.")
    return queries


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Relevance by query and passage, from TREC's four columns or from the `gold` ids of a question file.

    Raises:
        DataError: a line does not have four columns, or its relevance is no number; or there are none.
    """
    if ".jsonl" in path.suffixes:
        gold_qrels = {question.id: dict.fromkeys(question.gold, 1) for question in read_questions(path)}
        return {query: passages for query, passages in gold_qrels.items() if passages}
    qrels: dict[str, dict[str, int]] = {}
    for location, line in _lines(path):
        columns = line.split()
        if len(columns) != 4 or not re.fullmatch("-?[0-9]+", columns[3]):
            raise DataError(f"{location}, does not read 'query 0 passage relevance'; mend or remove the line.")
        qrels.setdefault(columns[0], {})[columns[2]] = int(columns[3])
    if not qrels:
        raise DataError(f"There are no judgements in {path}; give a file of 'query 0 passage relevance' lines.")
    return qrels


def sample(items: Sequence[T], limit: int | None, seed: int, skip: int = 0) -> list[T]:
    """`limit` of the items (all if None) after the first `skip`, in an order that depends only on `seed`.

    A larger limit adds to the same sample; a `skip` as large as another run's limit gives a disjoint sample.
    """
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)  # noqa: S311 - an experiment, not a secret
    return shuffled[skip:][:limit]


def equal_parts(sets: Sequence[Sequence[T]], count: int, seed: int) -> list[T]:
    """So many items, drawn from all sets alike; what a small set lacks, the larger ones give."""
    drawn = list[T]()
    for position, items in enumerate(sorted(sets, key=len)):
        drawn += sample(items, (count - len(drawn)) // (len(sets) - position), seed)
    return drawn


def usable_questions(
    file: Path, chosen: Sequence[Question], why_not: Callable[[Question], str], what: str
) -> tuple[tuple[Question, ...], dict[str, int]]:
    """The questions that can be used, and the number of those left out, by the reason that `why_not` gives.

    Raises:
        DataError: no question is left.
    """
    reasons = [why_not(question) for question in chosen]
    questions = tuple(question for question, reason in zip(chosen, reasons, strict=True) if not reason)
    if not questions:
        raise DataError(f"None of the {len(chosen)} questions chosen from {file} can be {what}.")
    return questions, dict(Counter(filter(None, reasons)))


def place_gold(
    passages: Sequence[Passage], gold: Sequence[Passage], where: GoldPlacement, seed: str
) -> tuple[Passage, ...]:
    """The top k passages with the gold one where the experiment wants it; their number stays k.

    Args:
        passages: the top k as retrieved.
        gold: the passages that hold the answer; the one retrieved best is placed, else the first of them.
        where: "none" leaves the passages as they are; "insert" puts a missing gold passage at a random place (post-
            fusion, section 4); "first" and "last" move it there, or put it there if it is missing (section 4.5).
        seed: decides the random place.
    """
    gold_ids = {passage.id for passage in gold}
    retrieved = next((passage for passage in passages if passage.id in gold_ids), None)
    if where == "none" or not gold or (where == "insert" and retrieved):
        return tuple(passages)
    chosen = retrieved or gold[0]
    other_passages = [passage for passage in passages if passage.id != chosen.id][: max(len(passages) - 1, 0)]
    position = {"first": 0, "last": len(other_passages)}.get(where, random.Random(seed).randint(0, len(other_passages)))  # noqa: S311
    return (*other_passages[:position], chosen, *other_passages[position:])


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file's bytes, by which a run recognises its data.

    Raises:
        DataError: the file can't be read.
    """
    with _read_errors(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _question(location: str, record: dict[str, Any], seen_ids: set[str]) -> Question:
    weak = "gold" not in record and "gold_weak" in record
    gold = (*_list(location, record, "gold_weak" if weak else "gold"), *_list(location, record, "also_contains_answer"))
    return Question(
        _new_id(location, record, seen_ids),
        _text(location, record, "question"),
        _list(location, record, "answers"),
        gold,
        bool(record.get("unanswerable", False)),
        weak,
    )


def _new_id(location: str, record: dict[str, Any], seen_ids: set[str]) -> str:
    record_id = str(record.get("id", "")).strip()
    if not record_id:
        raise DataError(f"{location}, has no id; every line needs one.")
    if record_id in seen_ids:
        raise DataError(f"{location}, repeats the id '{record_id}'; ids have to be unique.")
    seen_ids.add(record_id)
    return record_id


def _text(location: str, record: dict[str, Any], key: str) -> str:
    text = record.get(key)
    if not isinstance(text, str) or not text.strip():
        raise DataError(f"{location}, has no text under '{key}'.")
    return text


def _list(location: str, record: dict[str, Any], key: str) -> tuple[str, ...]:
    values = record.get(key, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise DataError(f"{location}, has something else than a list of texts under '{key}'.")
    return tuple(values)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with _read_errors(path), cast("IO[str]", opener(path, "rt", encoding="utf-8-sig")) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"{path.name}, line {number}", line


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Within this, what keeps a file from being read is a `DataError`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise DataError(f"The file {path} is not UTF-8 text ({error.reason}); save it as UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"The file {path} can't be read ({reason}); check the path.") from error
