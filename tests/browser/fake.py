"""A page on scripted turns: everything but the models is real. `python -m tests.browser.fake` serves it."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from threading import Event

from assistant.chat import Chat, Watch
from assistant.commands.exit_status import end_with
from assistant.commands.serve import serve_until_stopped
from assistant.errors import LibraryError, ModelError, UtteranceError
from assistant.llm.load import load
from assistant.llm.models import Models
from assistant.parts import LoadingStage
from assistant.protocols import Embedder, Engine, Parts, Progress
from assistant.runs import Runs
from assistant.settings import LLMSettings, Settings, WebSettings
from assistant.steps import recall
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.tokens import AccessTokens
from assistant.store.usage import Usage
from assistant.store.users import Logins
from assistant.text.sentences import clean
from assistant.types import (
    Answer,
    Asks,
    Candidate,
    Choices,
    Citation,
    Completion,
    Confidence,
    Digest,
    Fact,
    FactOffer,
    Messages,
    Options,
    Passage,
    Query,
    RankedFact,
    Sentence,
    Tokens,
    Turn,
    TurnEvent,
    Wait,
)
from assistant.upkeep.accounts import Accounts
from assistant.web.allowance import Allowance
from assistant.web.library import Document, OwnDocuments
from assistant.web.metrics import Metrics
from assistant.web.page import House
from assistant.web.server import Server, choosing, serve
from assistant.wording.replies import FIXED
from ptkb.statements import statements
from ptkb.store import Ptkb
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM

PAUSE = 0.002  # seconds before each word; tests that watch an answer grow take their own
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
    "![p](http://evil.example/p.png) [l](http://evil.example/) <b>bold</b> ${window.hacked=1} {{value}}"
)

PASSAGES = (
    Passage(
        "food-12",
        "A vegetarian plate",
        "A plate without meat can hold all that a body needs. Lentils, beans, tofu and eggs are rich in protein. "
        "Combine legumes with grains over the day. Iron from plants is taken up better with vitamin C.",
        0.0325,
        ("question", "draft"),
        "Everyday shelf",
    ),
    Passage(
        "diet-3",
        "Living without lactose",
        "Lactose is the sugar in milk. People with lactose intolerance do well with hard cheese, which holds almost "
        "none, and with oat or soy drink. Check that plant drinks are enriched with calcium.",
        0.0312,
        ("draft",),
        "Everyday shelf",
    ),
    Passage(
        "food-2",
        "Fibre and satiety",
        "Fibre slows digestion and keeps you full. Most adults eat less than 20 g a day, where 30 g would be better. "
        "Oats, legumes and fruit with skin are good sources.",
        0.0164,
        ("question",),
        "Everyday shelf",
    ),
    Passage(
        "norway-geo",
        "Norway - Geography",
        "Norway lies in Northern Europe, bordering the North Sea and the North Atlantic Ocean, west of Sweden.",
        0.0120,
        ("draft",),
        "The World Factbook",
    ),
)
PAGES = ("The key hangs behind the green door of the shed.", "The boiler is drained in November.")
DRAFT = "A good diet is varied: vegetables, legumes, whole grains, fruit, nuts, and enough protein and calcium."
HARD_CHEESE = (
    "People with lactose intolerance do well with hard cheese, which holds almost none, and with oat or soy drink."
)
# (sentence of the answer, place of its passage, the quote in it, support); under a half it is supported partly
SENTENCES = (
    (
        "Lentils, beans, tofu and eggs give you protein without meat.",
        0,
        "Lentils, beans, tofu and eggs are rich in protein.",
        0.97,
    ),
    ("Hard cheese and oat or soy drink suit you, since they hold almost no lactose.", 1, HARD_CHEESE, 0.91),
    ("A good diet also makes you happy.", -1, "", 0.08),
    (
        "Aim for about 30 g of fibre a day, from oats, legumes and fruit.",
        2,
        "Most adults eat less than 20 g a day, where 30 g would be better.",
        0.38,
    ),
    ("Combine legumes with grains over the day.", 0, "Combine legumes with grains over the day.", 0.99),
)

NOT_HELD = Answer(FIXED["not_held"], unknown=True, outcome="not_held")


@dataclass
class Script:
    """How fast the scripted model writes, whether it waits before the answer until `go` is set, and how it breaks.

    `wait` is what it says it waits for meanwhile.
    """

    pause: float = PAUSE
    broken: str = ""
    wait: Wait | None = None
    go: Event = field(default_factory=Event)
    loads: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.go.set()
        self.loads.set()

    def load(self, settings: Settings, progress: Progress, tell: Callable[[str], None]) -> Engine:
        """A scripted engine for a model of the catalogue, once `loads` is set; a server's as it is."""
        if settings.llm.backend == "server":
            return load(settings, progress)
        progress(30, 100)
        self.loads.wait()
        return Named("scripted again" if settings.llm.model == "default" else settings.llm.model)


class Named(ScriptedLLM):
    """A scripted engine of another name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for n in range(1, 9):
            stop.wait(0.001)
            yield Completion("word " * n, 9, n, finish="stop" if n == 8 else "")

    def close(self) -> None:
        """Nothing is loaded."""


# Messages about what is known, which real code answers.
ASKS: dict[str, Asks] = {
    "what do you know about me?": "recall",
    "forget that i'm vegetarian.": "forget",
    "why do you think that?": "why",
}
# How sure the scripted estimator is of each passage; of all, a tenth of it, where the library holds no answer.
SURE = (0.93, 0.81, 0.24, 0.004)


class ScriptedChat(Chat):
    """Real saving, scripted answers: the utterance says which."""

    def __init__(
        self,
        conversations: Conversations,
        ptkb: Ptkb,
        loading: Loaded,
        script: Script,
        models: Models,
        watches: Sequence[Watch] = (),
    ) -> None:
        super().__init__(conversations, ptkb, loading, watches)
        self.loading, self.script, self.models = loading, script, models

    def _answered(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        if self.loading.error:
            raise ModelError(self.loading.error)
        utterance = clean(turn.utterance)
        if not utterance:
            raise UtteranceError("The message is empty; type a question first.")
        if len(utterance) > 20_000:
            raise UtteranceError("The message has too many characters; shorten it.")
        with self.models.lent(user, turn.model) as llm:
            yield from scripted(replace(turn, utterance=utterance, model=llm.name), self.script, stop)


def scripted(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    """The snapshots of one turn."""
    for snapshot in _flow(turn, script, stop):
        time.sleep(script.pause)
        turn = snapshot
        yield turn
        if stop.is_set():
            break
    yield replace(turn, status="failed" if turn.error else "stopped" if stop.is_set() else "done", step="")


def _flow(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    said = turn.utterance.lower()
    if said in ASKS:
        asking = Parts(Settings(), ScriptedLLM(), WORDS, FixedRetriever([]))
        yield from recall.run(replace(turn, step="answer", intent="conversation", asks=ASKS[said]), asking, stop)
        return
    yield (turn := replace(turn, step="facts", facts=(*_stated(turn), *_ranked(turn.known)), timings={"facts": 0.04}))
    if said.startswith(("hello", "i've just")):
        offers = _offers(turn) if said.startswith("i've") else ()
        text = "Thanks for telling me." if offers else "Hello! What would you like to know?"
        yield from _written(replace(turn, step="answer", intent="small_talk"), text, "conversation", script, stop)
        yield replace(
            turn, step="offers", intent="small_talk", answer=Answer(text, origin="conversation"), offers=offers
        )
        return
    yield (turn := replace(turn, step="glance", passages=PASSAGES[:2], timings={"facts": 0.04, "glance": 0.2}))
    question = turn.utterance if not turn.history else f"{turn.utterance} (about {turn.history[-1].utterance})"
    yield (turn := replace(turn, step="question", question=question, rewritten=bool(turn.history)))
    yield (turn := replace(turn, step="draft", draft=DRAFT))
    queries = (Query("question", question), Query("draft", DRAFT))
    turn = replace(turn, queries=queries, passages=PASSAGES[: turn.choices.k])
    if "unjudged" not in said:
        yield (turn := _judged(turn, 0.1 if "atlantis" in said else 0.45 if "weakly" in said else 1.0))
    digests = tuple(Digest(passage.id, passage.text) for passage in PASSAGES)
    spent = {"draft": Tokens(212, 48), "answer": Tokens(811, 92)}
    timings = {"facts": 0.04, "glance": 0.2, "draft": 3.1, "digests": 0.1, "answer": 9.8}
    turn = replace(
        turn,
        step="digests",
        digests=digests,
        timings=timings,
        spent=spent,
    )
    yield turn
    while not script.go.wait(0.05) and not stop.is_set():
        yield replace(turn, step="answer", wait=script.wait)
    yield from _answered(turn, said, script, stop)


def _answered(turn: Turn, said: str, script: Script, stop: Event) -> Iterator[Turn]:
    if script.broken:
        yield replace(turn, step="answer", error=script.broken)
    elif "fail" in said:
        yield replace(
            turn, step="answer", error="The model ran out of memory; close other programs or choose a smaller one."
        )
    elif turn.confidence and turn.confidence.level == "none" and turn.choices.below not in {"", "answer"}:
        yield from _instead(
            replace(turn, events=(TurnEvent("none_relevant", "confidence 0.10, below 0.30"),)), script, stop
        )
    elif "unknown" in said:
        yield from _unknown(turn, script, stop)
    elif named := re.search(r"in my (pdf|\S+\.\w+)", said):
        yield _quoted(turn, "house.pdf" if named[1] == "pdf" else named[1])
    elif "said twice" in said:
        yield _said_twice(turn)
    elif "fall back" in said:
        yield from _voted(replace(turn, step="fallback", events=(TurnEvent("fell_back"),)), script, stop)
    elif turn.choices.strategy == "post_fusion":
        yield from _voted(turn, script, stop)
    elif "hostile" in said:
        passage = replace(PASSAGES[0], title=HOSTILE, text=HOSTILE, source=HOSTILE)
        turn = replace(
            turn, passages=(passage,), draft=HOSTILE, events=(TurnEvent("other", HOSTILE),), own_answer=HOSTILE
        )
        yield replace(turn, step="answer", answer=Answer(HOSTILE), sentences=(Sentence(HOSTILE, state="not"),))
    else:
        yield from _cited(turn, script, stop)


def _cited(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    plain = " ".join(text for text, *_ in SENTENCES)
    for turn in _written(turn, plain, "passages", script, stop):
        yield turn
    if stop.is_set():
        return
    yield replace(turn, step="citations")
    numbers: dict[str, int] = {}
    cited, sentences, text = [], [], ""
    for sentence, place, quote, support in SENTENCES:
        text += f" {sentence}"
        if place < 0 or place >= len(turn.passages):
            sentences.append(Sentence(sentence, state="not", support=support))
            continue
        passage = PASSAGES[place]
        n = numbers.setdefault(passage.id, len(numbers) + 1)
        start = passage.text.index(quote)
        partly = support < 0.5
        cited.append(Citation(n, passage.id, start, start + len(quote), sentence, quote, support, partly))
        sentences.append(Sentence(sentence, "partly" if partly else "supported", support, (n,)))
        text += f" [{n}]"
    answer = Answer(text.strip())
    yield replace(
        turn, step="offers", answer=answer, citations=tuple(cited), sentences=tuple(sentences), offers=_offers(turn)
    )


def _quoted(turn: Turn, name: str) -> Turn:
    """Two citations of a document of the user's, whatever is in it: of a PDF, of a page each."""
    said = [Passage(f"{name}-{n}", "The house", text, 0.5, source=name, own=True) for n, text in enumerate(PAGES, 1)]
    if name.endswith(".pdf"):
        headings = ("", "In winter > The boiler")
        said = [
            replace(one, source=f"{name}, page {n}", page=n, heading=heading)
            for n, (one, heading) in enumerate(zip(said, headings, strict=True), 1)
        ]
    citations = tuple(Citation(n, one.id, 0, len(one.text), one.text, one.text, 0.95) for n, one in enumerate(said, 1))
    text = " ".join(f"{one.quote} [{one.n}]" for one in citations)
    return replace(turn, step="answer", passages=tuple(said), answer=Answer(text), citations=citations)


def _said_twice(turn: Turn) -> Turn:
    """A sentence that two passages say, each in its own words."""
    said = "Legumes are good for you."
    quotes = (
        (0, "Combine legumes with grains over the day."),
        (2, "Oats, legumes and fruit with skin are good sources."),
    )
    citations = tuple(
        Citation(n, PASSAGES[at].id, start, start + len(text), said, text, 0.9, further=n > 1)
        for n, (at, text) in enumerate(quotes, 1)
        for start in [PASSAGES[at].text.index(text)]
    )
    sentences = (Sentence(said, "supported", 0.9, (1, 2)),)
    return replace(turn, step="answer", answer=Answer(f"{said} [1] [2]"), citations=citations, sentences=sentences)


def _unknown(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    yield replace(turn, step="fallback", events=(TurnEvent("fell_back"),))
    pool = tuple(Candidate("Perhaps 42." if n == 0 else "unknown", p.id, n == 0, n > 0) for n, p in enumerate(PASSAGES))
    answer = replace(NOT_HELD, origin="pool")
    yield replace(
        turn,
        step="admit",
        events=(TurnEvent("fell_back"),),
        pool=pool,
        answer=answer,
        own_answer="It may be **42**, as far as I recall.",
    )


def _judged(turn: Turn, share: float) -> Turn:
    """The passages with their confidences, and the best of these as that of them all."""
    passages = tuple(replace(one, confidence=sure * share) for one, sure in zip(turn.passages, SURE, strict=False))
    found = Confidence(SURE[0] * share, 0.3, "cross-encoder:shipped", "isotonic, on 3,080 passages of NQ and SQuAD")
    return replace(turn, step="relevance", passages=passages, confidence=found)


def _instead(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    """What is said where no passage answers, as steps/answer.py and steps/admit_unknown.py say it."""
    if turn.choices.below == "refuse":
        answer = NOT_HELD
        yield replace(turn, step="admit", answer=answer, own_answer="It may be **Poseidonis**, as far as I recall.")
        return
    own = "It may be **Poseidonis**, as far as I recall."
    asking = turn.choices.below == "ask"
    for turn in _written(turn, FIXED["ask"] if asking else own, "model", script, stop):
        yield replace(turn, answer=replace(turn.answer, outcome="ask" if asking else "own") if turn.answer else None)


def _voted(turn: Turn, script: Script, stop: Event) -> Iterator[Turn]:
    """Post-fusion, as a fallback or by itself: two passages agree, one says something else, one gives no answer."""
    said = "Lentils, beans, tofu and eggs are rich in protein."
    like, other = "Beans, lentils, tofu and eggs hold protein.", "Fibre slows digestion."
    texts = ((said, 2, 0), (like, 2, 0), (other, 1, 1), ("unknown", 0, -1))
    pool = tuple(Candidate(t, p.id, v, g < 0, g) for (t, v, g), p in zip(texts, PASSAGES, strict=True))
    for turn in _written(replace(turn, pool=pool), said, "pool", script, stop):
        yield turn
    if stop.is_set():
        return
    start = PASSAGES[0].text.index(said)
    yield replace(
        turn,
        step="offers",
        answer=Answer(f"{said} [1]", origin="pool"),
        citations=(Citation(1, PASSAGES[0].id, start, start + len(said), said, said, 0.97),),
        sentences=(Sentence(said, "supported", 0.97, (1,)),),
        spent={**turn.spent, "fallback": Tokens(640, 31)},
        timings={**turn.timings, "answer": 6.4},
    )


def _written(turn: Turn, text: str, origin: str, script: Script, stop: Event) -> Iterator[Turn]:
    words = text.split(" ")
    for n in range(1, len(words) + 1):
        if stop.is_set():
            return
        yield replace(turn, step="answer", answer=Answer(" ".join(words[:n]), origin=origin))
        time.sleep(script.pause)


def _ranked(known: Sequence[Fact]) -> tuple[RankedFact, ...]:
    on = [fact for fact in known if fact.on]
    return tuple(RankedFact(fact.id, fact.text, 0.62 - 0.2 * n, n < 2, n == 0) for n, fact in enumerate(on))


def _stated(turn: Turn) -> tuple[RankedFact, ...]:
    texts = statements(turn.utterance) if turn.utterance.endswith("?") else []
    return tuple(RankedFact(text, text, 0.6, used=True, shows=True, stored=False) for text in texts)


def _offers(turn: Turn) -> tuple[FactOffer, ...]:
    if turn.temporary or "vegan" not in turn.utterance.lower():
        return ()
    old = next((fact for fact in turn.known if "vegetarian" in fact.text), None)
    return (FactOffer("I'm vegan.", old.id if old else ""), FactOffer("I like oats."))


@dataclass
class Loaded:
    """Stages that a test can change."""

    ready: bool = True
    error: str = ""
    notice: str = ""
    judges: str = ""
    embeds: Embedder | None = None
    models: Models | None = None
    settings: Settings = field(default_factory=Settings)
    told: tuple[LoadingStage, ...] = (
        LoadingStage("Sentence-BERT", 1.0, done=True),
        LoadingStage("Starter library", 0.42),
        LoadingStage("Language model"),
    )

    def stages(self) -> tuple[LoadingStage, ...]:
        return self.told

    @property
    def embedder(self) -> Embedder | None:
        return self.embeds

    def waiting(self) -> Wait:
        if self.models and self.models.change:
            return self.models.waiting()
        return Wait("loading", "Starter library", 42, 100)

    def loaded(self, seconds: float, model: str = "") -> bool:
        time.sleep(seconds)
        there = self.models.loaded(0, model) if self.models else True
        return there and (self.ready or bool(self.error))

    def lent(self, user: str, choices: Choices, model: str = "") -> AbstractContextManager[Parts]:
        raise ModelError("No parts: the answers are scripted.")

    def prepare(self, user: str, choices: Choices) -> str:
        return "The library is being encoded for search by meaning." if choices.retriever == "dense" else ""


@dataclass
class Shelf(OwnDocuments):
    """Documents by user, in memory, with their originals in a folder; an empty file is refused."""

    folder: Path
    kept: dict[str, dict[str, Document]] = field(default_factory=dict)

    def list(self, user: str) -> list[Document]:
        return sorted(self.kept.get(user, {}).values(), key=lambda document: document.name)

    def mark(self, user: str) -> str:
        return str(sorted(self.kept.get(user, {})))

    def add(
        self,
        user: str,
        files: Sequence[Path],
        progress: Progress,
        stop: Event,
        names: Mapping[Path, str] | None = None,
    ) -> list[str]:
        problems = []
        for n, file in enumerate(files):
            progress(n, len(files))
            name = (names or {}).get(file, file.name)
            text = file.read_bytes()
            if text.strip():
                original = self.folder / user / sha256(text).hexdigest()
                original.parent.mkdir(parents=True, exist_ok=True)
                original.write_bytes(text)
                document = Document(name, name, len(text) // 500 + 1, original)
                self.kept.setdefault(user, {})[name] = document
            else:
                problems.append(f"{file.name} is empty.")
        return problems

    def remove(self, user: str, document: str) -> None:
        if self.kept.get(user, {}).pop(document, None) is None:
            raise LibraryError("There is no such document; it may have been removed meanwhile.")


def house(
    folder: Path,
    script: Script,
    loading: Loaded,
    port: int = 0,
    host: str = "127.0.0.1",
    *,
    grace: float = 30.0,
    slots: int = 4,
    upload_mb: int = 20,
) -> tuple[House, Logins]:
    """The page's foundations, in `folder`; as many turns as there are slots have the model at a time."""
    web = WebSettings(host=host, port=port, admins=("ann",), grace_seconds=grace, max_upload_mb=upload_mb)
    settings = Settings(data_dir=folder, database="", web=web, llm=LLMSettings(slots=slots))
    engine = connect(settings.database_url)
    conversations, ptkb = Conversations(engine), Ptkb(engine)
    loading.models, loading.settings = models, _ = Models(settings, script.load), settings
    models.take_up(models.known.named(), Named("scripted"))
    metrics, usage = Metrics(), Usage(engine)
    watches = (metrics.watch, Allowance(usage, settings.limits).watch)
    chat = ScriptedChat(conversations, ptkb, loading, script, models, watches)
    runs = Runs(models.line.ahead, max_per_user=settings.limits.max_answers)
    logins, tokens = Logins(engine), AccessTokens(engine)
    accounts = Accounts(settings, engine, conversations)
    may = choosing(settings.web, logins)
    kept = (settings, chat, conversations, ptkb, Shelf(folder / "shelf"), loading, runs, tokens)
    return House(*kept, accounts, models, may, usage, metrics), logins


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--port", type=int, default=7861)
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--grace", type=float, default=30.0)
    parser.add_argument("--loading", action="store_true")
    given = parser.parse_args()
    loading = Loaded(ready=not given.loading)
    built, logins = house(given.data_dir, Script(given.pause), loading, given.port, grace=given.grace)
    server: Server = serve(built, logins)
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    serve_until_stopped(server)


if __name__ == "__main__":
    end_with(main)
