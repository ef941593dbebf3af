"""`train blend`: how much a trained estimator and the likeness of embeddings should each count."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import by_words_only, talk
from assistant.commands.experiment import Basic, embedder_of, indexed, show, spread
from assistant.errors import DataError
from assistant.experiment.options import Corpus, Questions, Sample
from assistant.experiment.report import markdown


@spread
def blend(
    *,
    corpus: Corpus,
    questions: Questions,
    model: Annotated[Path, typer.Option(help="The folder of a cross-encoder or a T5, which gets a blend.json.")],
    depth: Annotated[int, typer.Option(min=2, max=100, help="BM25 candidates of each question.")] = 20,
    some: Sample,
    usual: Basic,
) -> None:
    """Blend a trained estimator with the embedder's cosine, on questions that name their gold passages."""
    from assistant.judges.relevance.blend import NAME, fit  # noqa: PLC0415
    from assistant.judges.relevance.by_cosine import cosines  # noqa: PLC0415
    from assistant.judges.relevance.estimators.seq2seq import is_seq2seq  # noqa: PLC0415 - torch
    from assistant.judges.relevance.load import trained  # noqa: PLC0415

    chosen = [one for one in some.asked(questions).values() if one.gold and not one.unanswerable]
    if not chosen:
        raise DataError(f"No question of {questions} names a gold passage; give another file.")
    knobs = by_words_only(usual.knobs())
    retriever, judge = indexed(corpus, knobs), trained("seq2seq" if is_seq2seq(model) else "cross_encoder", model)
    embedder = embedder_of(knobs)
    scores, alike, relevant = list[float](), list[float](), list[bool]()
    with bar("Questions") as progress:
        for done, question in enumerate(chosen):
            progress(done, len(chosen))
            passages = retriever.search(question.text, depth)
            scores += [one.score for one in judge.estimate(question.text, passages, Event())]
            alike += cosines(embedder, question.text, passages)
            relevant += [passage.id in question.gold for passage in passages]
    found = fit(embedder.name, scores, alike, relevant)
    found.save(model / NAME)
    show(asdict(found), markdown(asdict(found)), usual.as_json)
    talk.print(f"The blend is {model / NAME}.", soft_wrap=True)
