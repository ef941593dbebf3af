"""The nouns of Sequitur.

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
# What a message wants with what is known of its writer: hear it, have some of it go, or what the last reply rests on.
Asks = Literal["", "recall", "forget", "why"]
Form = Literal["chat", "factoid"]
Origin = Literal["passages", "pool", "model", "conversation"]
# What a reply is: what was written; the model's own knowledge, for want of a source; or, in fixed words, why nothing
# was written: nobody was asked (withheld), the library doesn't hold it, what was found doesn't suit the person, the
# person is asked what to do, or was only telling something.
Outcome = Literal["written", "own", "withheld", "not_held", "unsuited", "ask", "acknowledged"]
# What may happen in a turn that a person should know; `wording.events` says it in words.
EventCode = Literal[
    "documents_missing", "none_relevant", "relevance_failed", "quality_failed", "none_reliable", "summary_failed",
    "suitability_failed", "not_checked", "second_look_failed", "set_aside", "fell_back", "quoted", "unsupported",
    "own_knowledge", "lines_left", "other",
]  # fmt: skip
# What is done with whole documents.
Task = Literal["summary", "compare", "changes", "table"]
Support = Literal["well", "weak", "none"]
# Whether passages say what a sentence says.
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

    With a `schema`, a JSON schema as text, nothing is written but JSON that keeps to it.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    schema: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """Generated text so far. `logprobs` holds the natural-log probability of each generated token, where known.

    `finish` is "repeated" where the text went round and was cut; tokens and `logprobs` still count what was cut off.
    Engines that can tell how far they have read the prompt say so before there is any text: `read` of `prompt_tokens`
    tokens. It is 0 as soon as something is written.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    logprobs: tuple[float, ...] = ()
    finish: Literal["", "stop", "length", "repeated", "cancelled"] = ""
    read: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Probabilities of given words as the reply to a prompt; they sum to 1 over the words."""

    probabilities: Mapping[str, float]
    prompt_tokens: int = 0


# --- what a turn is made of --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of the user's PTKB. `source` is "typed" or the id of the turn it was remembered from.

    `field` is what it is about (`ptkb.fields.FIELDS`), "" where nobody has told yet.
    """

    id: str
    text: str
    created: datetime
    changed: datetime
    source: str = "typed"
    on: bool = True
    field: str = ""

    def in_field(self, field: str) -> Fact:
        """The same fact, said to be about this."""
        return replace(self, field=field)


@dataclass(frozen=True, slots=True)
class RankedFact:
    """A fact as one turn saw it. `relevance` is a cosine in [-1, 1]; `used` says whether it matters for the turn.

    `told` says whether the model that answers is told it all the same, since there are few. `shows` says whether the
    answer depends on it; None where nobody looked.
    """

    id: str
    text: str
    relevance: float
    used: bool
    shows: bool | None = None
    told: bool = False


@dataclass(frozen=True, slots=True)
class FactOffer:
    """A statement about the user, offered for remembering; `replaces` is the id of a fact that it contradicts."""

    text: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One earlier utterance of the conversation, its stand-alone form, and the reply to it.

    `turn` is its id, and `origin` where the reply came from. `reasons` are the ids of the facts that the reply depends
    on, and `quotes` the passages' titles with the places in them that it cites.
    """

    utterance: str
    question: str
    reply: str
    turn: str = ""
    origin: Origin = "passages"
    reasons: tuple[str, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A text that was searched for; `name` says what it is ("question", "draft", ...)."""

    name: str
    text: str


def full_title(title: str, heading: str) -> str:
    """A document's title with the heading of a section of it; either may be ""."""
    return " - ".join(filter(None, (title, heading)))


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage.

    `score` is the retriever's own (BM25: unbounded; dense: cosine; fused: reciprocal rank sum). `found_by` names the
    queries that found it. `source` is the file or work it came from. `confidence` is how sure the relevance estimator
    is that it answers the question, in (0, 1); None where no estimator was asked. It is the person's `own` where it
    stands in a document of theirs. `page` is the page of a PDF that it begins on, from 1; 0 where that isn't known.
    `heading` is what the section that it stands in is headed by, with the sections around that ("Care > Cleaning"); it
    is no part of the text, so that nothing in it is cited.
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
        """The document's title, and where in it the passage stands: "Espresso machine - Care > Cleaning"."""
        return full_title(self.title, self.heading)

    @property
    def titled(self) -> str:
        """Full title and text in one, as prompts and estimators have it."""
        return f"{self.full_title}: {self.text}" if self.full_title else self.text


@dataclass(frozen=True, slots=True)
class Dropped:
    """A passage that was found and left out, with the label it was judged by, of probability in [1/3, 1]."""

    passage: Passage
    label: str
    probability: float


# Confidences stay this far from 0 and 1, where the score would be infinite; well below what any estimator resolves.
EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Relevance:
    """How relevant one passage is: `confidence` is r_j, in (0, 1); `score` is s_j, its log-odds, in nats."""

    confidence: float
    score: float

    @staticmethod
    def of_confidence(confidence: float) -> Relevance:
        """From a probability (RE-RAG, equation 4: s = log(r / (1 - r))), kept off 0 and 1.

        Raises:
            ValueError: it is not a number in [0, 1].
        """
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence has to be in [0, 1], not {confidence}")
        inside = min(max(confidence, EDGE), 1 - EDGE)
        return Relevance(inside, log(inside / (1 - inside)))

    @staticmethod
    def of_score(score: float) -> Relevance:
        """From log-odds, such as a cross-encoder's logit; kept off the ends.

        Raises:
            ValueError: it is not a number.
        """
        if score != score:  # noqa: PLR0124 - only NaN differs from itself
            raise ValueError("a score has to be a number")
        most = log((1 - EDGE) / EDGE)
        inside = min(max(score, -most), most)
        return Relevance(1 / (1 + exp(-inside)), inside)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure the relevance estimator is that the passages hold the answer (RE-RAG, section 5.1).

    `value` is max_j r_j over all passages that were estimated, in (0, 1). Under `threshold` the library counts as not
    holding the answer. `calibration` says how the number was made to mean what it says, "" if it was not.
    """

    value: float
    threshold: float
    estimator: str
    calibration: str = ""

    @property
    def level(self) -> Support:
        """In words for a person: "none" under the threshold, "well" in the upper half of what is left, else "weak"."""
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
    """One round of searching and writing: what was searched for, what it found, and the document written from that."""

    query: str
    passages: tuple[Passage, ...]
    document: str = ""


@dataclass(frozen=True, slots=True)
class Digest:
    """What the model is shown of a passage: its best sentences (`spans` says where they are), or a summary of it."""

    passage_id: str
    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a turn left out, since it clashes with a fact; `passage_id` is where it stood, "" for the model's words."""

    text: str
    fact: str
    passage_id: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer in the pool of post-fusion: what one passage alone gave, and the votes its cluster got.

    `group` numbers the cluster, so that candidates that voted for each other share it; -1 where nobody voted. Where
    answers are weighed instead (re_rag), `weight` is P_RE of the passage and `probability` the cluster's share of all
    answers' probability; both are in [0, 1].
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
    probability that the passage says it. If it says but a part, `partly` is set. It is `further` where the sentence
    would have its support without it: another passage that says the same.
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
    """A sentence of the answer, without markers. `support`, in [0, 1], is None where no judge was asked about it.

    It is "unchecked" where it claims nothing, and where there was no judge.
    """

    text: str
    state: State | Literal["unchecked"]
    support: float | None = None
    citations: tuple[int, ...] = ()


def _with_state(stored: object) -> object:
    """A sentence as it was stored before there were states, with its state."""
    if not isinstance(stored, dict) or "state" in stored:
        return stored
    backed = "supported" if stored.get("citations") else "unchecked"
    return {**stored, "state": backed if stored.get("supported") else "not"}


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, the passages that may support it together, and the question; "" where there is none.

    `given` are other texts that may name what the sentence names, such as the user's facts; they support nothing.
    """

    sentence: str
    evidence: tuple[Passage, ...]
    question: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How likely the evidence says all of a claim, in [0, 1], and what that counts as.

    `veto` says which number or name the evidence lacks, "" for none; the claim then doesn't count as supported.
    """

    probability: float
    state: State
    veto: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply. `text` carries [n] markers once citations are settled.

    `origin` says where it came from: the passages together, the pool of post-fusion, the model's own knowledge, or the
    conversation itself. `outcome` says what kind of reply it is.
    """

    text: str
    unknown: bool = False
    origin: Origin = "passages"
    outcome: Outcome = "written"


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """Something that happened in a turn: a code, and what an error or a number adds to it."""

    code: EventCode
    detail: str = ""


def _with_code(stored: object) -> object:
    """What happened, as it was stored before there were codes: a sentence."""
    return {"code": "other", "detail": stored} if isinstance(stored, str) else stored


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens read and written by the language model."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.prompt - other.prompt, self.completion - other.completion)


@dataclass(frozen=True, slots=True)
class Choices:
    """What was chosen for a turn: the loop, the answer strategy, how many passages, which library, how it is searched.

    `form` is "chat" (full sentences, cited) or "factoid" (a few words, for evaluation); `loops` is the X of
    Generate-Retrieve-Generate; `below` is what happens where no passage seems to answer, "" for what the settings say
    of the form. `collection` is "@recipes" where this message named that collection, or one before it did; `library` is
    the same then.
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
    """What a running turn waits for: that the `prompt` is read, things are loaded, the user's documents, or its turn.

    Or that so many `passages` of whole documents are read.

    `done` of `total` units are ready (tokens of a prompt, passages, percent of anything else); a `total` of 0 means
    that nobody knows. `name` says which thing is being loaded. Of a `line`, `total` people are still before this one.
    """

    kind: Literal["prompt", "loading", "documents", "line", "passages"]
    name: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done with whole documents: their ids, in order, and their names; a table has `columns`."""

    task: Task
    documents: tuple[str, ...]
    names: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a turn begins with, and what kind of message it is.

    `english` is the message in English where it was put into that, else "". A `temporary` turn knows no facts and
    offers none. `asks` is what the message wants with what is known of the person. Where `work` is set, it is no
    message, but work on whole documents.
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
    work: Work | None = None

    @property
    def said(self) -> str:
        """What was said, in English where it was put into English."""
        return self.english or self.utterance


@dataclass(frozen=True, slots=True)
class Retrieved(Asked):
    """What was looked for, and what was found: facts and passages, and what of them the model is shown.

    `reserve` are the next best passages after `passages`, which weighted answers use as well.
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
    dropped: tuple[Dropped, ...] = ()
    digests: tuple[Digest, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def used_facts(self) -> tuple[str, ...]:
        """The texts of the facts that matter for this turn, most relevant first."""
        return tuple(fact.text for fact in self.facts if fact.used)

    @property
    def told_facts(self) -> tuple[str, ...]:
        """The texts of the facts that the model is told, most relevant first: those that matter, or all if few."""
        return tuple(fact.text for fact in self.facts if fact.used or fact.told)

    @property
    def contextual(self) -> str:
        """The facts that are used and the stand-alone question, in one."""
        return " ".join((*self.used_facts, self.question))

    @property
    def document(self) -> str:
        """The document of the last iteration, "" where none was written."""
        return self.iterations[-1].document if self.iterations else ""

    @property
    def shown(self) -> tuple[Passage, ...]:
        """The passages as the model reads them: each with its digest for a text, if that has any."""
        digests = {digest.passage_id: digest.text for digest in self.digests}
        return tuple(replace(one, text=text) for one in self.passages if (text := digests.get(one.id, one.text)))


@dataclass(frozen=True, slots=True)
class Answered(Retrieved):
    """The reply, and what it was chosen from.

    `own_answer` is what the model said by itself where the library has no answer. A reply about what is known has the
    facts that it lists in `listed`, and in `about` the id of the turn that it explains.
    """

    answer: Answer | None = None
    own_answer: str = ""
    pool: tuple[Candidate, ...] = ()
    reasoning: str = ""
    listed: tuple[Fact, ...] = ()
    about: str = ""
    offers: tuple[FactOffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Grounded(Answered):
    """Which sentences of the reply have support, and by which places in the passages.

    `left_lines` is how many were left out of a work on whole documents, since none does.
    """

    sentences: tuple[Annotated[Sentence, BeforeValidator(_with_state)], ...] = ()
    citations: tuple[Citation, ...] = ()
    left_lines: int = 0

    @property
    def reasons(self) -> tuple[RankedFact, ...]:
        """The facts that the answer depends on, most relevant first."""
        return tuple(fact for fact in self.facts if fact.shows)


@dataclass(frozen=True, slots=True)
class Turn(Grounded):
    """One utterance and all that was made of it; steps give back a copy with more in it (`dataclasses.replace`).

    What it has of its own is how it runs and what it cost. `wait` is for those who watch, and is never stored; `model`
    is the name of the one that writes, and before that the id of the one that must, "" for whichever runs.
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
        """A copy to show while the model reads its prompt."""
        return replace(self, wait=Wait("prompt", done=piece.read, total=piece.prompt_tokens))

    def with_event(self, code: EventCode, detail: object = "") -> Turn:
        """A copy with this event, told once however often it happens."""
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
        """Everything, as one JSON text that `from_json` reads back."""
        return _TURN.dump_json(self).decode()

    @staticmethod
    def from_json(text: str) -> Turn:
        """The turn that `to_json` wrote. Fields that the text lacks take their defaults."""
        return _TURN.validate_json(text)


_TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
