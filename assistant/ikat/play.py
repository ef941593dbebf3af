"""Plays the conversations of TREC iKAT turn by turn, as the assistant would answer each of them.

Every turn starts afresh from the canonical conversation: what the track's own assistant replied before is the history,
not what ours did. One row, as it is kept in rows.jsonl:

    {"id": "9-1_3", "question": "Is the DASH diet healthy?", "text": "The DASH diet ... [1]",
     "response": "The DASH diet ...", "digests": "...", "unknown": false,
     "ranking": ["clueweb22-en0020-69-12751:1", ...], "dropped": {"clueweb22-en0000-10-00001:4": "junk"},
     "used": {"clueweb22-en0020-69-12751:1": "The DASH diet ..."},
     "cited": ["clueweb22-en0020-69-12751:1"],
     "facts": [{"id": "5", "text": "I'm vegetarian.", "score": 0.61, "used": true}, ...],
     "queries": {"question": "...", "draft": "..."}, "draft": "...", "seconds": 3.1, "prompt_tokens": 743,
     "completion_tokens": 96}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Literal

from assistant import turn as flow
from assistant.errors import DataError, SequiturError
from assistant.experiment.datasets import fingerprint
from assistant.experiment.runs import Row, Run
from assistant.ikat.topics import Topic, Topics, TopicTurn
from assistant.protocols import Parts, Progress
from assistant.retrieve.fusion import fuse
from assistant.text.markers import extract_markers
from assistant.types import Choices, Exchange, Passage, Query, Turn

RunType = Literal["automatic", "manual"]
# The track assesses no more of a ranking than this.
MAX_DEPTH = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """How the conversations are played.

    A "manual" run is given people's resolved utterances, an "automatic" one what the user said. `depth` is how many
    passages are ranked for a turn; `quality` is the file of the classifier of their quality, "" for none.
    """

    topics: Path
    searched: str
    choices: Choices
    kind: RunType = "automatic"
    depth: int = MAX_DEPTH
    quality: str = ""


def open_run(folder: Path, plan: Plan, model: str) -> Run[str]:
    """The folder of this run.

    Raises:
        DataError: the folder holds a run on other topics, or one that was played otherwise.
    """
    choices = plan.choices
    claim = {
        "topics": fingerprint(plan.topics),
        "searched": plan.searched,
        "model": model,
        "kind": plan.kind,
        "depth": plan.depth,
        # named only where it is on, so that runs from before it could be go on
        **({"quality": fingerprint(Path(plan.quality))} if plan.quality else {}),
        **{name: getattr(choices, name) for name in ("loop", "loops", "strategy", "k")},
    }
    return Run(folder, claim, lambda row: str(row["id"]))


def play(topics: Topics, plan: Plan, run: Run[str], parts: Parts, progress: Progress) -> None:
    """Play every turn that the run's rows lack, each row written as soon as its turn is over.

    Raises:
        DataError: a turn could not be played; the message names it, and the next run goes on with it.
    """
    parts = without_small_talk(parts)
    jobs = [(turn.id, partial(_row, topics.file, topic, turn, plan, parts)) for topic, turn in topics.turns.values()]
    run.fill(jobs, len(jobs), progress)


def without_small_talk(parts: Parts) -> Parts:
    """The parts with which no turn passes for small talk: "I'd like to stay here." wants passages from the track."""
    settings = parts.settings.changed(turn={"intent_threshold": 1.0, "writing_threshold": 1.0})
    return replace(parts, settings=settings)


def turn_of(topic: Topic, topic_turn: TopicTurn, plan: Plan) -> Turn:
    """The turn as the assistant is given it: the utterance, the canonical history, and the user's facts."""
    utterances = {turn.id: turn.resolved if plan.kind == "manual" else turn.utterance for turn in topic.turns}
    earlier_turns = topic.turns[: topic.turns.index(topic_turn)]
    history = tuple(Exchange(utterances[turn.id], utterances[turn.id], turn.response) for turn in earlier_turns)
    return Turn(utterances[topic_turn.id], history, topic.facts, plan.choices, id=topic_turn.id)


def finish_turn(turn: Turn, parts: Parts, name: str) -> Turn:
    """The turn at its end.

    Raises:
        DataError: it failed; the message begins with the `name`.
    """
    try:
        *_, turn = flow.run(turn, parts, Event())
    except SequiturError as error:
        raise DataError(f"{name}: {error}") from error
    if turn.status == "failed":
        raise DataError(f"{name}: {turn.error}")
    return turn


def _row(file: str, topic: Topic, topic_turn: TopicTurn, plan: Plan, parts: Parts) -> Row:
    turn = finish_turn(turn_of(topic, topic_turn, plan), parts, f"{file}, turn {topic_turn.id}")
    return row_of(turn, ranking(turn, parts, plan.depth))


def ranking(turn: Turn, parts: Parts, depth: int) -> list[Passage]:
    """At most `depth` passages: those that the answer was made from, in their order, then what else was found.

    What the turn left out as unreliable is not offered to the track either.

    The turn's queries are searched again, as deep as is wanted; for a turn without any, its utterance.
    """
    queries = turn.queries or (Query("utterance", turn.utterance),)
    rankings = {query.name: parts.retriever.search(query.text, depth) for query in queries}
    turn_passage_ids = {passage.id for passage in (*turn.passages, *(dropped.passage for dropped in turn.dropped))}
    deeper_passages = fuse(rankings, depth, parts.settings.retrieve.rrf_k)
    return [*turn.passages, *(passage for passage in deeper_passages if passage.id not in turn_passage_ids)][:depth]


def row_of(turn: Turn, passages: list[Passage]) -> Row:
    """What a run keeps of a turn that was played."""
    answer = turn.answer.text if turn.answer else ""
    return {
        "id": turn.id,
        "question": turn.question,
        "text": answer,
        "response": plain_response(answer),
        "digests": " ".join(_digests(turn)),
        "unknown": turn.answer is not None and (turn.answer.unknown or turn.answer.origin == "model"),
        "ranking": [passage.id for passage in passages],
        "dropped": {dropped.passage.id: dropped.label for dropped in turn.dropped},
        "used": {passage.id: passage.text for passage in turn.passages},
        "cited": list(dict.fromkeys(citation.passage_id for citation in turn.citations)),
        "facts": [
            {"id": f.id, "text": f.text, "score": round(f.relevance, 4), "used": f.used} for f in turn.facts if f.stored
        ],
        "queries": {query.name: query.text for query in turn.queries},
        "draft": turn.draft,
        "seconds": round(turn.seconds, 3),
        "prompt_tokens": turn.tokens.prompt,
        "completion_tokens": turn.tokens.completion,
    }


def plain_response(answer: str) -> str:
    """An answer without its numbered markers, in one paragraph."""
    return " ".join(extract_markers(answer, max_number=0).text.split())


def _digests(turn: Turn) -> Iterator[str]:
    """The digests in the passages' order: the grounded text that the paper's runs give as response (section 2.2.5)."""
    by_passage = {digest.passage_id: digest.text for digest in turn.digests}
    return (by_passage[passage.id].strip() for passage in turn.passages if passage.id in by_passage)
