"""Views of a turn: as JSON with stable keys for programs, and in a few words for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from assistant.text.markers import extract_markers
from assistant.types import Answer, Candidate, Passage, Turn
from assistant.wording.replies import reply, sentence

QUOTE_CHARS = 90
UnsourcedKind = Literal["", "refused", "own", "asked"]

# What each running step does, for a person who waits.
STEP_ACTIVITIES = {
    "load": "Waiting until everything is ready",
    "english": "Reading your message",
    "facts": "Looking at your facts",
    "intent": "Looking at your facts",
    "glance": "Looking for first sources",
    "question": "Working out the question",
    "passages": "Searching the library",
    "draft": "Thinking of what to look for",
    "document": "Writing down what was found",
    "relevance": "Asking which passages answer",
    "quality": "Judging the passages",
    "digests": "Reading the passages",
    "in_play": "Looking at your facts",
    "suited": "Leaving out what doesn't suit you",
    "work": "Reading the whole document",
    "answer": "Writing the answer",
    "fallback": "Asking each passage alone",
    "citations": "Checking every sentence",
    "addresses": "Looking at the reply again",
    "quote": "Looking for a sentence that answers",
    "admit": "Checking every sentence",
    "suits": "Leaving out what doesn't suit you",
    "own": "Asking what the model knows itself",
    "because": "Checking every sentence",
    "language": "Translating the reply",
    "offers": "Checking every sentence",
}


# The name of each step, shown beside its cost.
STEP_TITLES = {
    "english": "Your message, in English",
    "facts": "Your facts",
    "intent": "Kind of message",
    "glance": "First sources",
    "question": "Question, to stand alone",
    "passages": "Searching",
    "draft": "Draft",
    "document": "Documents",
    "relevance": "Relevance of passages",
    "quality": "Quality of passages",
    "digests": "Best sentences",
    "in_play": "Your facts, beside the passages",
    "suited": "What suits you, of passages",
    "work": "Work on the whole document",
    "answer": "Answer",
    "fallback": "Each passage alone",
    "citations": "Support of sentences",
    "addresses": "Second look at the reply",
    "quote": "A sentence that answers",
    "admit": "Whether it is known",
    "suits": "What suits you, of the reply",
    "own": "The model's own knowledge",
    "because": "Facts in the answer",
    "language": "Reply, in your language",
    "offers": "What to remember",
}


def as_json(turn: Turn) -> dict[str, Any]:
    """The turn as plain values, in the order in which people read them. Offsets refer to the passage's `text`."""
    return {
        "id": turn.id,
        "utterance": turn.utterance,
        "status": turn.status,
        "error": turn.error,
        "intent": turn.intent,
        "asks": turn.asks,
        "question": turn.question,
        "rewritten": turn.rewritten,
        "facts": [asdict(fact) for fact in turn.facts],
        "draft": turn.draft,
        "iterations": [asdict(iteration) for iteration in turn.iterations],
        "queries": [asdict(query) for query in turn.queries],
        "passages": [asdict(passage) for passage in turn.passages],
        "reserve": [asdict(passage) for passage in turn.reserve],
        "confidence": {**asdict(turn.confidence), "level": turn.confidence.level} if turn.confidence else None,
        "dropped": [asdict(dropped) for dropped in turn.dropped],
        "digests": [asdict(digest) for digest in turn.digests],
        "left_out": [asdict(left_out) for left_out in turn.left_out],
        "pool": [asdict(candidate) for candidate in turn.pool],
        "answer": {**asdict(turn.answer or Answer("", unknown=True)), "text": reply(turn.answer)},
        "own_answer": turn.own_answer,
        "sentences": [asdict(sentence) for sentence in turn.sentences],
        "citations": [asdict(citation) for citation in turn.citations],
        "listed": [{"id": fact.id, "text": fact.text, "on": fact.on} for fact in turn.listed],
        "offers": [asdict(offer) for offer in turn.offers],
        "events": [sentence(event) for event in turn.events],
        "cuts": list(turn.cuts),
        "choices": asdict(turn.choices),
        "model": turn.model,
        "timings": dict(turn.timings),
        "tokens": {
            **asdict(turn.tokens),
            "steps": {step: asdict(tokens) for step, tokens in turn.spent.items()},
        },
    }


def headline(turn: Turn) -> str:
    """One line about what a turn is doing, or has done: "Read 4 passages, used 2 facts, 14 s"."""
    if turn.status == "running":
        return STEP_ACTIVITIES.get(turn.step, "Thinking")
    seconds = f"{turn.seconds:.0f} s" if turn.seconds >= 1 else f"{turn.seconds:.1f} s"
    stopped = "Stopped. " if turn.status == "stopped" else ""
    if turn.intent != "question":
        return f"{'Stopped. Without' if stopped else 'Answered without'} the library, {seconds}"
    passage_count, fact_count = len(turn.passages), len(turn.used_facts)
    verb = "Looked at" if passed_over(turn) else "Read"
    return f"{stopped}{verb} {_count(passage_count, 'passage')}, used {_count(fact_count, 'fact')}, {seconds}"


def wait_progress(turn: Turn) -> str:
    """The progress of what a running turn waits for, such as "reads 640 of 1,216 tokens"; "" if it isn't known."""
    wait = turn.wait
    if wait is None or turn.status != "running":
        return ""
    if wait.kind == "line":
        return _queue_position(wait.total)
    if wait.kind == "prompt":
        return f"reads {wait.done:,} of {wait.total:,} tokens"
    if wait.kind == "passages":
        return f"passage {wait.done:,} of {wait.total:,}"
    name = "your documents" if wait.kind == "documents" else wait.name
    return f"{name}, {wait.done} %" if name and wait.total else name


def _queue_position(people: int) -> str:
    """A person's position in the queue."""
    if not people:
        return "you are next"
    return f"{people} {'person' if people == 1 else 'people'} before you"


def unsourced_kind(turn: Turn) -> UnsourcedKind:
    """What a reply without sources is: the model's own knowledge, a refusal, or the question what to do; "" for others.

    A reply refuses or asks only if no passage seemed to answer.
    """
    if turn.answer and turn.answer.origin == "model" and not turn.answer.unknown and turn.answer.outcome != "ask":
        return "own"
    if turn.answer is None or not passed_over(turn):
        return ""
    return "refused" if turn.answer.unknown else "asked"


def lacks_sourced_answer(turn: Turn) -> bool:
    """Whether a finished turn has no answer, or only what the model knows by itself."""
    answer = turn.answer
    return turn.status == "done" and answer is not None and (answer.unknown or unsourced_kind(turn) == "own")


def incomplete_notice(turn: Turn) -> str:
    """That there is no reply, or not all of it, and why; "" where nothing is missing."""
    reason = turn.error or turn.status
    if not turn.answer or not turn.answer.text.strip():
        return f"No reply ({reason})"
    return "" if turn.status == "done" else f"This reply is not whole ({reason})"


def passed_over(turn: Turn) -> bool:
    """Whether no passage was relevant enough, so that the reply was not made from the passages found."""
    return turn.has_event("none_relevant")


@dataclass(frozen=True, slots=True)
class Source:
    """A cited quotation from a passage; `partly` if the passage says no sentence of the reply in full.

    `source` is its file or work with the page, and `link` its web address, if it has one.
    """

    n: int
    title: str
    quote: str
    partly: bool
    source: str = ""

    @property
    def link(self) -> str:
        """The web address of the source, "" for none."""
        return link_of(self.source)


def link_of(source: str) -> str:
    """The web address in a passage's source, "" if its document was not added from the web."""
    address = source.rpartition(", page ")[0] or source
    is_address = address.startswith(("http://", "https://")) and not any(char in address for char in ' <>"')
    return address if is_address else ""


def sources(turn: Turn) -> list[Source]:
    """The quotations that a reply cites, each once, by number."""
    passages = {passage.id: passage for passage in turn.passages}
    quotations: dict[tuple[int, int, str, str], bool] = {}
    for citation in turn.citations:
        quotation = (citation.n, citation.start, citation.passage_id, citation.quote)
        quotations[quotation] = citation.partly and quotations.get(quotation, True)
    return [
        Source(n, passage.full_title or id_, quote, partly, passage.source)
        for (n, _, id_, quote), partly in sorted(quotations.items())
        for passage in [passages.get(id_, Passage(id_, "", ""))]
    ]


@dataclass(frozen=True, slots=True)
class Ballot:
    """An answer in the pool with the candidates that voted for it; `won` says whether it became the reply.

    `share` is its share of the probability, in [0, 1], if answers were weighed; 0 if votes were counted.
    """

    text: str
    voters: tuple[Candidate, ...]
    won: bool
    share: float


def ballots(turn: Turn) -> list[Ballot]:
    """The answers of single passages: the one that became the reply first, then those with most support."""
    groups: dict[object, list[Candidate]] = {}
    for candidate in turn.pool:
        if not candidate.unknown:
            # In turns of earlier versions, without groups, equal texts have voted for each other.
            groups.setdefault(candidate.group if candidate.group >= 0 else candidate.text, []).append(candidate)
    reply_text = _pooled_reply(turn)
    pool_ballots = [_ballot(tuple(voters), reply_text) for voters in groups.values()]
    return sorted(pool_ballots, key=lambda ballot: (not ballot.won, -ballot.share, -len(ballot.voters)))


def events(turn: Turn) -> list[str]:
    """The events of a turn for people, with the votes if passages were asked alone.

    The event that no passage was relevant is left out, since the confidence is shown.
    """
    votes = f": {_tally(turn)}." if turn.pool else "."
    sentences = [
        sentence(event).removesuffix(".") + votes if event.code == "fell_back" else sentence(event)
        for event in turn.events
        if event.code != "none_relevant"
    ]
    vote_sentences = [f"Each passage was asked alone{votes}"] if turn.pool and not turn.has_event("fell_back") else []
    return [*sentences, *vote_sentences]


def _tally(turn: Turn) -> str:
    pool_ballots, passage_count = ballots(turn), len(turn.pool)
    if not pool_ballots:
        return "none of them gave an answer" if passage_count > 1 else "it gave no answer"
    first_ballot, *others = pool_ballots
    votes, unknown_count = len(first_ballot.voters), sum(candidate.unknown for candidate in turn.pool)
    share = f" ({first_ballot.share:.0%} by relevance)" if first_ballot.share else ""
    parts = [f"{votes} of {passage_count} {_verb(votes, 'say')} “{_short(first_ballot.text)}”{share}"]
    if other_votes := sum(len(ballot.voters) for ballot in others):
        parts.append(f"{other_votes} {_verb(other_votes, 'say')} something else")
    if unknown_count:
        parts.append(f"{unknown_count} gave no answer")
    return ", ".join(parts) + ("; but no sentence of a passage backs that" if lacks_sourced_answer(turn) else "")


def _ballot(voters: tuple[Candidate, ...], reply_text: str) -> Ballot:
    texts = [_plain(voter.text) for voter in voters]
    won, share = reply_text in texts, max(voter.probability for voter in voters)
    return Ballot(reply_text if won else texts[0], voters, won, share)


def _pooled_reply(turn: Turn) -> str:
    """The reply as plain text if it comes from the pool, else ""."""
    answer = turn.answer
    return "" if answer is None or answer.unknown or answer.origin == "passages" else _plain(answer.text)


def _plain(text: str) -> str:
    """On one line, without markers."""
    return " ".join(extract_markers(text).text.split())


def _verb(n: int, verb: str) -> str:
    return f"{verb}s" if n == 1 else verb


def _short(text: str) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= QUOTE_CHARS else line[: QUOTE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
