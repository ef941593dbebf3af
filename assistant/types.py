"""The data types of Sequitur, above all the turn.

A turn is a value that grows: every step takes the frozen `Turn` and returns a richer one. The page, the command line,
the store and the evaluation read the same snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import exp, log
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BeforeValidator, Field, TypeAdapter

from assistant.settings import IfUnanswerable, RetrieverName

Role = Literal["system", "user", "assistant"]
Status = Literal["running", "done", "stopped", "failed"]
Intent = Literal["question", "small_talk", "conversation", "writing"]
# What a message asks about the stored facts: to list them, to forget some of them, or to explain the last reply.
Asks = Literal["", "recall", "forget", "why"]
Form = Literal["chat", "factoid"]
Origin = Literal["passages", "pool", "model", "conversation"]
# What kind of reply it is. "written": the strategy's answer. "own": the model's own knowledge, for want of a source.
# All others are fixed sentences: "withheld" (no passage was relevant enough, and the model was not asked), "not_held"
# (the library has no answer), "unsuited" (all that was found clashes with the person's facts), "ask" (the person is
# asked what to do), and "acknowledged" (the message only stated something and asked nothing).
Outcome = Literal["written", "own", "withheld", "not_held", "unsuited", "ask", "acknowledged"]
# What may happen in a turn that a person should know of; `wording.replies` puts each code into a sentence.
EventCode = Literal[
    "documents_missing", "none_relevant", "relevance_failed", "quality_failed", "none_reliable", "summary_failed",
    "suitability_failed", "not_checked", "second_look_failed", "set_aside", "fell_back", "quoted", "outdone",
    "unsupported", "own_knowledge", "lines_left", "other",
]  # fmt: skip
# The kinds of work on whole documents.
WorkKind = Literal["summary", "compare", "changes", "table"]
Support = Literal["well", "weak", "none"]
# Whether the passages support a sentence of the reply.
State = Literal["supported", "partly", "not"]


def new_id() -> str:
    """A short random id, unique enough for one installation."""
    return uuid4().hex[:12]


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


# --- what goes into and comes out of a language model ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Role
    content: str


Messages = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """How to generate: a budget in tokens, temperature (0 = greedy), seed, and strings that end the text.

    `schema` is a JSON schema as text. llama.cpp and OpenVINO then let the model write only JSON that fits it, and
    servers are asked to do so. The backend transformers does not: there only the prompt asks for JSON.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Generated text so far. `logprobs` holds the natural-log probability of each generated token, where known.

    `finish` is "repeated" if the text repeated itself and was cut; tokens and `logprobs` still include what was cut
    off. Before there is any text, engines that can tell how far they have read the prompt give `read`: so many of its
    `prompt_tokens`. `read` is 0 again as soon as something is written. `cached` is the number of prompt tokens that the
    engine still had from earlier prompts and did not read again; 0 if it doesn't tell.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: tuple[float, ...] = ()
    finish: Literal["", "stop", "length", "repeated", "cancelled"] = ""
    read: int = 0
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The probability of each of a few words as the reply to a prompt; they sum to 1. `cached` as in `Completion`."""

    probabilities: Mapping[str, float]
    prompt_tokens: int = 0
    cached: int = 0


# --- what a turn is made of --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of the user's PTKB. `source` is "typed" or the id of the turn it was remembered from.

    `field` is its topic, one of `ptkb.fields.FIELDS`; "" if it has not been determined yet. `english` is a turn's
    translation of a fact in another language; it isn't stored.
    """

    id: str
    text: str
    created: datetime
    changed: datetime
    source: str = "typed"
    on: bool = True
    field: str = ""
    english: str = ""

    @property
    def in_english(self) -> str:
        """The fact in English: its translation if a turn made one, else its text."""
        return self.english or self.text

    def in_field(self, field: str) -> Fact:
        """The same fact with this topic."""
        return replace(self, field=field)


@dataclass(frozen=True, slots=True)
class RankedFact:
    """A fact as one turn saw it. `relevance` is a cosine in [-1, 1]; `used` says whether it matters for the turn.

    `told` says whether the answering model is given the fact even if it is not `used`, because there are only few facts
    or because the message itself states it. `shows` says whether the answer depends on the fact; None if that was not
    checked. A fact that is not `stored` was stated in this conversation and counts only there. `text` is in English if
    the turn is.
    """

    id: str
    text: str
    relevance: float
    used: bool
    shows: bool | None = None
    told: bool = False
    stored: bool = True


@dataclass(frozen=True, slots=True)
class FactOffer:
    """A statement about the user, offered for remembering; `replaces` is the id of a fact that it contradicts."""

    text: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One earlier utterance of the conversation, its stand-alone form, and the reply to it.

    `turn` is the id of its turn, and `origin` says where the reply came from. `reasons` are the ids of the facts that
    the reply depends on. `quotes` are the titles of the cited passages, each with the quoted text. `stated` is what the
    utterance states about its writer, `asks` what it asks about the stored facts, and `created` when it was written.
    """

    utterance: str
    question: str
    reply: str
    turn: str = ""
    origin: Origin = "passages"
    reasons: tuple[str, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()
    stated: tuple[str, ...] = ()
    asks: Asks = ""
    created: datetime = field(default_factory=now, compare=False)


@dataclass(frozen=True, slots=True)
class Query:
    """A text that was searched for; `name` says which kind of text it is ("question", "draft", ...)."""

    name: str
    text: str


def full_title(title: str, heading: str) -> str:
    """A document's title joined with a section's heading; either may be ""."""
    return " - ".join(filter(None, (title, heading)))


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage.

    `score` is the retriever's own (BM25: unbounded; dense: cosine; fused: reciprocal rank sum). `found_by` names the
    queries that found it. `source` is the file or work it came from. `confidence` is how sure the relevance estimator
    is that it answers the question, in (0, 1); None if no estimator was asked. `own` says that it comes from a document
    of the person who asks. `page` is the page of a PDF on which it begins, from 1; 0 if that isn't known. `heading` is
    the heading of its section, preceded by those of the enclosing sections ("Care > Cleaning"); it is not part of the
    text, so it is never cited.
    """

    id: str
    title: str
    text: str
    score: float = 0.0
    found_by: tuple[str, ...] = ()
    source: str = ""
    confidence: float | None = None
    own: bool = False
    page: int = 0
    heading: str = ""

    @property
    def full_title(self) -> str:
        """The document's title and the passage's heading: "Espresso machine - Care > Cleaning"."""
        return full_title(self.title, self.heading)

    @property
    def titled(self) -> str:
        """Full title and text in one string, as prompts and estimators read it."""
        return f"{self.full_title}: {self.text}" if self.full_title else self.text


@dataclass(frozen=True, slots=True)
class DroppedPassage:
    """A passage that the quality classifier rejected, with its label and the label's probability, in [1/3, 1]."""

    passage: Passage
    label: str
    probability: float


# Confidences are kept this far from 0 and 1, where the score would be infinite; no estimator is more precise than this.
PROBABILITY_MARGIN = 1e-6


@dataclass(frozen=True, slots=True)
class Relevance:
    """How relevant one passage is: `confidence` is r_j, in (0, 1); `score` is s_j, its log-odds, in nats."""

    confidence: float
    score: float

    @staticmethod
    def of_confidence(confidence: float) -> Relevance:
        """From a probability (RE-RAG, equation 4: s = log(r / (1 - r))), kept away from 0 and 1.

        Raises:
            ValueError: the confidence is not a number in [0, 1].
        """
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence has to be in [0, 1], not {confidence}")
        clipped = min(max(confidence, PROBABILITY_MARGIN), 1 - PROBABILITY_MARGIN)
        return Relevance(clipped, log(clipped / (1 - clipped)))

    @staticmethod
    def of_score(score: float) -> Relevance:
        """From log-odds, such as a cross-encoder's logit, clipped to the range of `PROBABILITY_MARGIN`.

        Raises:
            ValueError: the score is NaN.
        """
        if score != score:  # noqa: PLR0124 - only NaN differs from itself
            raise ValueError("a score has to be a number")
        highest = log((1 - PROBABILITY_MARGIN) / PROBABILITY_MARGIN)
        clipped = min(max(score, -highest), highest)
        return Relevance(1 / (1 + exp(-clipped)), clipped)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure the relevance estimator is that the passages hold the answer (RE-RAG, section 5.1).

    `value` is max_j r_j over all estimated passages, in (0, 1). Below `threshold` the library counts as not holding the
    answer. `calibration` says how the estimator was calibrated, "" if it was not.
    """

    value: float
    threshold: float
    estimator: str
    calibration: str = ""

    @property
    def level(self) -> Support:
        """As a word: "none" below the threshold, "well" in the upper half of the range above it, else "weak"."""
        if self.value < self.threshold:
            return "none"
        return "well" if self.value >= (1 + self.threshold) / 2 else "weak"


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` (inclusive) to `end` (exclusive) of a passage's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Iteration:
    """One round of an ITRG loop: its query, the passages found, and the document written from them."""

    query: str
    passages: tuple[Passage, ...]
    document: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """What the model reads of a passage: its best sentences (`spans` says where they are), or a summary of it."""

    passage_id: str
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class OmittedText:
    """Text that was left out because it clashes with a fact; `passage_id` is "" if the model had written it."""

    text: str
    fact: str
    passage_id: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer in the pool of post-fusion: the answer from one passage alone, and the votes of its cluster.

    `group` is the number of its cluster of equal answers; -1 if there was no vote. If answers are weighed instead of
    counted (re_rag), `weight` is P_RE of the passage and `probability` the cluster's share of all answers' probability,
    both in [0, 1].
    """

    text: str
    passage_id: str
    votes: int = 0
    unknown: bool = False
    group: int = -1
    weight: float = 0.0
    probability: float = 0.0


@dataclass(frozen=True, slots=True)
class Citation:
    """A numbered link from a sentence of the answer to a sentence of a passage.

    `n` is the source's number in the answer, by first use. `start` and `end` are character offsets into the passage's
    text; `quote` is the text between them; `sentence` is the answer's sentence, and `support` in [0, 1] is the judge's
    probability that the passage says it. `partly` is set if the passage says only a part of it. `further` is set if
    another passage already supports the sentence, and this one says the same.
    """

    n: int
    passage_id: str
    start: int
    end: int
    sentence: str
    quote: str
    support: float
    partly: bool = False
    further: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the answer, without markers. `support`, in [0, 1], is None if no judge was asked about it.

    Its `state` is "unchecked" if it claims nothing, or if there was no judge.
    """

    text: str
    state: State | Literal["unchecked"]
    support: float | None = None
    citations: tuple[int, ...] = ()


def _with_state(stored: object) -> object:
    """A stored sentence of an earlier version, which had no `state`, with its state derived."""
    if not isinstance(stored, dict) or "state" in stored:
        return stored
    derived_state = "supported" if stored.get("citations") else "unchecked"
    return {**stored, "state": derived_state if stored.get("supported") else "not"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, the passages that together may support it, and the question ("" for none).

    `given` is other text, such as the user's facts. The sentence may use its names and numbers, but is not supported by
    it.
    """

    sentence: str
    evidence: tuple[Passage, ...]
    question: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's probability that the evidence says all of a claim, in [0, 1], and the state that follows from it.

    `veto` is a number or name of the claim that the evidence lacks, "" for none; with a veto the state is never
    "supported".
    """

    probability: float
    state: State
    veto: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply. `text` has [n] markers once the citations are settled.

    `origin` says where it came from: the passages together, the pool of post-fusion, the model's own knowledge, or the
    conversation itself. `outcome` says what kind of reply it is. `likely` is how likely it answers the question, in
    [0, 1], by the second look; None if there was none.
    """

    text: str
    unknown: bool = False
    origin: Origin = "passages"
    outcome: Outcome = "written"
    likely: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """Something that happened in a turn: a code, and a detail such as an error's message or a number."""

    code: EventCode
    detail: str = ""


def _with_code(stored: object) -> object:
    """A stored event of an earlier version, which was a plain sentence, as one with a code."""
    return {"code": "other", "detail": stored} if isinstance(stored, str) else stored


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens read and written by the language model; of those read, it still had `cached` from earlier prompts.

    If an engine doesn't tell how many it had, `cached` is 0.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt - other.prompt, self.completion - other.completion, self.cached - other.cached)


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for a turn: the loop, the strategy, the number of passages `k`, the library and its retriever.

    `form` is "chat" (full sentences, cited) or "factoid" (a few words, for evaluation). `loops` is the number of rounds
    of Generate-Retrieve-Generate, the paper's X. `below` says what happens if the relevance of all passages is below
    the threshold; "" leaves that to the settings. `collection` is for instance "@recipes" if this message or an earlier
    one named that collection, and `library` is then the same. It is "@all" if this message named "@all".
    """

    strategy: str = "concat_pf"
    loop: str = "grg"
    k: int = 4
    library: str = "starter"
    form: Form = "chat"
    loops: int = 1
    retriever: RetrieverName = "bm25"
    below: IfUnanswerable | Literal[""] = ""
    collection: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a running turn waits for.

    `kind` is "prompt" (the model is reading it), "loading" (of what `name` says), "documents" (the user's, being
    added), "line" (`total` other people come first) or "passages" (of whole documents, being read). `done` of `total`
    units are ready: tokens of a prompt, passages, or percent of anything else. A `total` of 0 means that the total
    isn't known.
    """

    kind: Literal["prompt", "loading", "documents", "line", "passages"]
    name: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """A task on whole documents, given by their ids and names in order; `columns` are the columns of a table."""

    task: WorkKind
    documents: tuple[str, ...]
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What a turn begins with, and what kind of message it is.

    `known` are the user's facts. `english` is the message translated into English, "" if it wasn't. A `temporary` turn
    knows no facts and offers none. `asks` is what the message asks about the stored facts. `stated` are the lasting
    things that it states about its writer. `rest` is the message without the sentences that only state such things; ""
    if it has no such sentences or nothing else. If `work` is set, the turn is not a message but work on whole
    documents. `unanswered` are earlier messages without a reply; only what they state counts.
    """

    utterance: str
    history: tuple[Exchange, ...] = ()
    known: tuple[Fact, ...] = ()
    choices: Choices = Choices()
    id: str = field(default_factory=new_id)
    created: datetime = field(default_factory=now)
    temporary: bool = False
    intent: Intent = "question"
    english: str = ""
    asks: Asks = ""
    stated: tuple[str, ...] = ()
    rest: str = ""
    work: Work | None = None
    unanswered: tuple[Exchange, ...] = ()

    @property
    def utterance_in_english(self) -> str:
        """What was said: the English translation if there is one, else the utterance."""
        return self.english or self.utterance

    @property
    def request(self) -> str:
        """What was said, without the sentences that only state facts, since these are among the turn's facts."""
        return self.rest or self.utterance_in_english


@dataclass(frozen=True, slots=True)
class RetrievedTurn(TurnInput):
    """What was searched for and found: facts, passages, and the part of the passages that the model is shown.

    `reserve` are the next best passages after `passages`; the strategy re_rag uses them as well.
    """

    question: str = ""
    rewritten: bool = False
    facts: tuple[RankedFact, ...] = ()
    draft: str = ""
    iterations: tuple[Iteration, ...] = ()
    queries: tuple[Query, ...] = ()
    passages: tuple[Passage, ...] = ()
    reserve: tuple[Passage, ...] = ()
    confidence: Confidence | None = None
    dropped: tuple[DroppedPassage, ...] = ()
    digests: tuple[Digest, ...] = ()
    left_out: tuple[OmittedText, ...] = ()

    @property
    def used_facts(self) -> tuple[str, ...]:
        """The texts of the facts that matter for this turn, most relevant first."""
        return tuple(fact.text for fact in self.facts if fact.used)

    @property
    def told_facts(self) -> tuple[str, ...]:
        """The texts of the facts that the model is given, most relevant first.

        These are the facts that matter and those that the message itself states; all facts if there are few.
        """
        return tuple(fact.text for fact in self.facts if fact.used or fact.told)

    @property
    def contextual(self) -> str:
        """The used facts and the stand-alone question in one string."""
        return " ".join((*self.used_facts, self.question))

    @property
    def document(self) -> str:
        """The document of the last iteration, "" if none was written."""
        return self.iterations[-1].document if self.iterations else ""

    @property
    def shown(self) -> tuple[Passage, ...]:
        """The passages as the model reads them, with their digests as texts; those with empty digests are left out."""
        digests = {digest.passage_id: digest.text for digest in self.digests}
        return tuple(replace(p, text=text) for p in self.passages if (text := digests.get(p.id, p.text)))


@dataclass(frozen=True, slots=True)
class AnsweredTurn(RetrievedTurn):
    """The reply, and what it was chosen from.

    `own_answer` is what the model said from its own knowledge, if the library has no answer. For a reply about the
    stored facts, `listed` are the facts that it lists, and `about` is the id of the turn that it explains.
    """

    answer: Answer | None = None
    own_answer: str = ""
    pool: tuple[Candidate, ...] = ()
    reasoning: str = ""
    listed: tuple[Fact, ...] = ()
    about: str = ""
    offers: tuple[FactOffer, ...] = ()


@dataclass(frozen=True, slots=True)
class GroundedTurn(AnsweredTurn):
    """Which sentences of the reply have support, and where in the passages.

    `left_lines` is the number of lines that were left out of work on whole documents because no passage supports them.
    """

    sentences: tuple[Annotated[Sentence, BeforeValidator(_with_state)], ...] = ()
    citations: tuple[Citation, ...] = ()
    left_lines: int = 0

    @property
    def reasons(self) -> tuple[RankedFact, ...]:
        """The facts that the answer depends on, most relevant first."""
        return tuple(fact for fact in self.facts if fact.shows)


@dataclass(frozen=True, slots=True)
class Turn(GroundedTurn):
    """One utterance and all that was made of it; each step returns a copy with more in it (`dataclasses.replace`).

    The fields below say how the turn runs and what it cost. `wait` is shown while the turn runs and is never stored.
    `model` is the name of the model that answers. Before the turn starts it may be the id of a model that was asked
    for; "" stands for whichever is loaded. `timings` (seconds) and `spent` (tokens) are by the name of the step.
    """

    status: Status = "running"
    step: str = ""
    wait: Annotated[Wait | None, Field(exclude=True)] = None
    events: tuple[Annotated[TurnEvent, BeforeValidator(_with_code)], ...] = ()
    cuts: tuple[str, ...] = ()
    error: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    spent: Mapping[str, Tokens] = field(default_factory=dict)
    model: str = ""

    def reading(self, piece: Completion) -> Turn:
        """A copy that shows how far the model has read its prompt."""
        return replace(self, wait=Wait("prompt", done=piece.read, total=piece.prompt_tokens))

    def with_event(self, code: EventCode, detail: object = "") -> Turn:
        """A copy with this event; the same event is added only once."""
        event = TurnEvent(code, str(detail))
        return self if event in self.events else replace(self, events=(*self.events, event))

    def has_event(self, code: EventCode) -> bool:
        """Whether this has happened."""
        return any(event.code == code for event in self.events)

    @property
    def tokens(self) -> Tokens:
        """Tokens over all steps."""
        return sum(self.spent.values(), Tokens())

    @property
    def seconds(self) -> float:
        """Wall time over all steps."""
        return sum(self.timings.values())

    def to_json(self) -> str:
        """The turn as JSON, which `from_json` reads back."""
        return _TURN.dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> Turn:
        """The turn that `to_json` wrote; missing fields take their defaults."""
        return _TURN.validate_json(text)


_TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
