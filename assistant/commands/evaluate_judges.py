"""`evaluate support`, `suitability`, `intents`, `relevance` and `re-rag`: the small models that check and weigh."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal

import numpy as np
import typer
from pydantic import BaseModel

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, by_words_only, load_llm, out, settings_of
from assistant.commands.experiment import (
    Corpus,
    Out,
    Questions,
    Sample,
    Skip,
    Thresholds,
    Usual,
    embedder_of,
    indexed,
    perform,
    show,
    spread,
)
from assistant.errors import DataError
from assistant.evaluation.thresholds import THRESHOLDS
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import read_models
from assistant.judges.relevance.calibration import Calibration, Method
from assistant.judges.suitability.judge import judge_of
from assistant.judges.suitability.knowledge import SHIPPED as SUITABILITY
from assistant.judges.uncertainty import told
from assistant.parts import load_embedder
from assistant.protocols import Parts, SupportJudge, silent
from assistant.settings import Settings
from assistant.steps.intent import TALK, intent_of, library_answers
from ptkb.extract import only_tells

SHIPPED, BY_LLM, ADDRESSES = "shipped", "llm", "addresses"
# Where the language model says yes more likely than no.
EVEN = 0.5
Estimates = Annotated[
    str, typer.Option("--estimator", help="'shipped', 'llm', 'cosine', or a cross-encoder or T5: a folder or a hub id.")
]


# --- judges of pairs ---------------------------------------------------------------------------------------------


@spread
def support(
    *,
    pairs: Annotated[
        Path, typer.Option(help="A .jsonl[.gz] file of {question, claim, title, evidence, label}, the first optional.")
    ],
    judge: Annotated[
        str,
        typer.Option(
            help="'shipped', the folder of a trained judge, 'llm': the language model's yes or no, or 'addresses': "
            "whether it finds that the claim answers the question as the evidence tells."
        ),
    ] = SHIPPED,
    split: Annotated[str, typer.Option(help="Only pairs of this split, where the file names any.")] = "",
    some: Sample,
    usual: Usual,
) -> None:
    """How well is "supported" told from the rest? AUC, balanced accuracy, precision, recall, milliseconds a pair."""
    from assistant.evaluation import support as measured  # noqa: PLC0415

    rows = some.of(measured.read_pairs(pairs, split))
    asked = _support(judge, usual.knobs())
    with bar("Pairs") as progress:
        found = measured.measure(rows, measured.by_judge(asked), asked.threshold, lambda n: progress(n, len(rows)))
    show({"judge": judge, **found}, measured.table(found), usual.as_json)


def _support(name: str, knobs: Settings) -> SupportJudge:
    from assistant.judges.addresses import Addresses  # noqa: PLC0415
    from assistant.judges.support.llm import ByLLM  # noqa: PLC0415
    from assistant.judges.support.trained import SHIPPED as FOLDER  # noqa: PLC0415
    from assistant.judges.support.trained import Support  # noqa: PLC0415

    if name == BY_LLM:
        return ByLLM(load_llm(knobs, silent), knobs.turn.support_threshold, load_embedder(knobs, silent))
    if name == ADDRESSES:
        return Addresses(load_llm(knobs, silent), Support(FOLDER), knobs.turn.addresses_threshold)
    return Support(FOLDER if name == SHIPPED else Path(name))


@spread
def suitability(
    *,
    pairs: Annotated[Path, typer.Option(help="Pairs: a .jsonl[.gz] file of {fact, text, clash}.")],
    judge: Annotated[
        str, typer.Option(help="The folder of a trained judge, or 'llm': the language model's own yes or no.")
    ] = str(SUITABILITY),
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Passages that pairs point into; may be given again.", show_default=False),
    ] = None,
    some: Sample,
    usual: Usual,
) -> None:
    """How well are clashes told? AUC, precision, recall, the share of false alarms, milliseconds a pair."""
    from assistant.evaluation import suitability as measured  # noqa: PLC0415

    rows = some.of(measured.read_pairs(pairs, corpus or ()))
    if judge == BY_LLM:
        with bar("Language model") as progress:
            asked, threshold = measured.by_llm(load_llm(usual.knobs(), progress)), EVEN
    else:
        trained = judge_of(Path(judge), embedder_of(usual.knobs()))
        asked, threshold = measured.by_judge(trained), trained.threshold
    found = measured.measure(rows, asked, threshold)
    show({"judge": judge, **found}, measured.table(found), usual.as_json)


# --- the check that decides what needs no library ----------------------------------------------------------------


class Message(BaseModel):
    """What a person wrote, what they meant, and the split of the file."""

    text: str
    intent: str
    split: str


@spread
def intents(
    *,
    messages: Annotated[Path, typer.Option(help="JSONL of {text, intent, split}.")],
    split: Annotated[str, typer.Option(help="dev, test, or empty for both.")] = "test",
    library: Annotated[
        str | None, typer.Option(help="Look up in this library what seems talk, as a turn does; without it, no search.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")] = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Are questions told from small talk, talk about the conversation and writing? Accuracy, and questions withheld."""
    knobs = settings_of(settings, data_dir)
    rows = [one for one in read_models(messages, Message, "not a labelled message") if split in {"", one.split}]
    if not rows:
        raise DataError(f"There are no lines of the split '{split}' in {messages}; give dev, test, or empty for both.")
    embedder = load_embedder(knobs, silent)
    found = [intent_of(row.text, embedder, knobs.turn) for row in rows]
    talk = [n for n, got in enumerate(found) if got in TALK and not only_tells(rows[n].text, embedder)]
    asks = _answered([rows[n].text for n in talk], library, knobs) if library else []
    for n, answered in zip(talk, asks, strict=False):
        found[n] = "question" if answered else found[n]
    got, meant = np.array(found), np.array([row.intent for row in rows])
    asked, written = meant == "question", meant == "writing"
    measures = {
        "split": split,
        "messages": len(rows),
        "threshold": knobs.turn.intent_threshold,
        "gate_accuracy": float(((got == "question") == asked).mean()),
        "accuracy": float((got == meant).mean()),
        "questions": int(asked.sum()),
        "questions_withheld": int((asked & (got != "question")).sum()),
        "writing": int(written.sum()),
        "writing_found": int((written & (got == "writing")).sum()),
        **({"looked_up": len(asks), "answered": sum(asks)} if library else {}),
        "writing_wrongly": int((~written & (got == "writing")).sum()),
    }
    if as_json:
        out.print_json(json.dumps(measures))
    else:
        out.print(measures)


def _answered(texts: list[str], library: str, knobs: Settings) -> list[bool]:
    from assistant.judges.relevance.load import load_calibrated  # noqa: PLC0415
    from assistant.library.shelves import open_library  # noqa: PLC0415 - Java

    estimator = load_calibrated("shipped", None, lambda: load_llm(knobs, silent), knobs, silent)
    retriever = open_library(library, knobs)
    return [library_answers(text, retriever, estimator, knobs.relevance, Event()) for text in texts]


# --- the relevance estimator -------------------------------------------------------------------------------------


@spread
def relevance(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    estimator: Estimates = "shipped",
    depth: Annotated[int, typer.Option(min=1, max=100, help="BM25 candidates that are estimated.")] = 20,
    k: Annotated[int, typer.Option("--k", min=1, help="The best of them, which make the context set.")] = 20,
    contexts: Annotated[
        Literal["auto", "retrieved", "own"],
        typer.Option(help="The set: what was retrieved, or the gold passages; auto = gold if some are unanswerable."),
    ] = "auto",
    calibration: Annotated[
        Path | None, typer.Option(help="A calibration to apply, made by --calibrate.", show_default=False)
    ] = None,
    calibrate: Annotated[
        Method | None,
        typer.Option(help="Calibrate each half on the other; all of it is written as calibration.json to --out."),
    ] = None,
    threshold: Thresholds = None,
    share: Annotated[
        float, typer.Option(help="Sets whose gold was withheld are weighed as if they were this share of all.")
    ] = 0.5,
    some: Sample,
    skip: Skip = 0,
    into: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The folder for rows and results; a run that is there goes on.", show_default="data folder"
        ),
    ] = None,
    usual: Usual,
) -> None:
    """Measure a relevance estimator: R@1 to R@20, F1 of 'unanswerable', calibration error."""
    from assistant.evaluation import relevance as measured  # noqa: PLC0415
    from assistant.judges.relevance.load import load  # noqa: PLC0415

    if calibration and calibrate:
        raise typer.BadParameter("give --calibration or --calibrate, not both")
    if calibration:
        Calibration.load(calibration)
    experiment = measured.Experiment(
        corpus, questions, depth, k, contexts, some.limit, some.seed, skip, share, tuple(threshold or THRESHOLDS)
    )
    material = measured.prepare(experiment)
    knobs = by_words_only(usual.knobs())
    with bar("Estimator") as progress:
        judge = load(estimator, lambda: load_llm(knobs, progress), knobs, progress)
    curve = Calibration.load(calibration, judge.name) if calibration else None
    task = measured.Estimates(experiment, material, judge.name, model_of(knobs), curve, calibrate)
    folder = into or _folder(knobs, task.claim())
    perform(task, folder, lambda: (judge, indexed(corpus, knobs)), as_json=usual.as_json)


def _folder(knobs: Settings, claim: Mapping[str, Any]) -> Path:
    """Where a run without --out is kept, so that it goes on when the same is asked again."""
    digest = sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()
    return knobs.data_dir / "runs" / f"relevance-{digest[:16]}"


@spread
def re_rag(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    estimator: Estimates = "shipped",
    calibration: Annotated[
        Path | None,
        typer.Option(help="A calibration to apply.", show_default="the one beside the model"),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=100, help="BM25 candidates of a question, each answered from.")] = 10,
    k: Annotated[int, typer.Option("--k", min=1, help="The best of them, whose answers are weighed.")] = 5,
    threshold: Thresholds = None,
    some: Sample,
    skip: Skip = 0,
    usual: Usual,
) -> None:
    """Measure RE-RAG: EM by weight and by vote, its parts alone, abstaining, the model's own knowledge."""
    from assistant.evaluation import weighing  # noqa: PLC0415 - scipy
    from assistant.judges.relevance.load import load_calibrated  # noqa: PLC0415 - torch

    knobs = by_words_only(usual.knobs())
    experiment = weighing.Experiment(
        corpus, questions, depth, k, some.limit, some.seed, skip, told(knobs.turn), tuple(threshold or THRESHOLDS)
    )
    chosen = weighing.prepare(experiment)
    retriever, embedder = indexed(corpus, knobs), embedder_of(knobs)
    with bar("Language model") as progress:
        llm = load_llm(knobs, progress)
    with bar("Estimator") as progress:
        judge = load_calibrated(estimator, calibration, lambda: llm, knobs, progress)
    task = weighing.Weighing(experiment, chosen, model_of(knobs), llm.name, judge)
    perform(task, into, lambda: Parts(knobs, llm, embedder, retriever), as_json=usual.as_json)
