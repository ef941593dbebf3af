"""What a generator makes of each passage: log P_G(a|q,c_j), kept on disk, to train relevance estimators with.

One row, where minus infinity is written as null, which JSON can hold:

    {"id": "0f3a...", "question": "What is ...?", "passages": ["nq00001", ...], "log_likelihoods": [-1.25, ...],
     "without": -9.5, "error": ""}

and for questions to choose the best epoch by, another with what it writes, and how likely that is:

    {"id": "0f3a...-answers", "answers": [["Lima", -0.1], ...]}

`by_words` needs no generator: an answer is likely where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from math import inf, isfinite, log
from pathlib import Path
from threading import Event

from assistant.errors import SettingsError, UtteranceError
from assistant.experiment.datasets import Question, fingerprint
from assistant.experiment.runs import Row, Run
from assistant.judges.relevance.estimators.llm import fit_passage
from assistant.prompting.render import FOLDER, render
from assistant.prompting.unknown import says_unknown
from assistant.protocols import LLM, Progress, Retriever
from assistant.text.sentences import normalise
from assistant.training.relevance.train import Example
from assistant.types import Options, Passage

PROMPT, ALONE = "factoid/post_fusion", "factoid/closed_book"
# What `by_words` holds likely: an answer that stands in the passage, one that doesn't, and one without any passage.
STANDS, LACKS, WITHOUT = log(0.9), log(0.01), log(0.1)
# Tokens that an answer may have; the prompt leaves them room.
ROOM = 64
WRITTEN = "-answers"


def open_run(folder: Path, corpus: Path, contexts: int, model: str) -> Run[str]:
    """The folder that keeps them, for any questions on this corpus.

    Raises:
        DataError: the folder holds those of another corpus, model, prompt or number of contexts.
    """
    prompt = sha256(b"".join((FOLDER / f"{name}.j2").read_bytes() for name in (PROMPT, ALONE))).hexdigest()
    asked = {"corpus": fingerprint(corpus), "model": model, "contexts": contexts, "prompt": prompt}
    return Run(folder, asked, lambda row: str(row["id"]))


def measure(
    questions: Sequence[Question],
    run: Run[str],
    llm: LLM,
    retriever: Retriever,
    contexts: int,
    progress: Progress,
    answered: int = 0,
) -> None:
    """Retrieve and score what the run's rows lack; the first `answered` questions are also answered from each passage.

    Raises:
        SettingsError: the model's backend can't tell how likely an answer is.
    """
    if not llm.can_score:
        raise SettingsError(f"{llm.name} can't tell how likely an answer is; set llm.backend to transformers.")

    def row(question: Question) -> Row:
        return _row(question, retriever.search(question.text, contexts), llm)

    def answers(question: Question) -> Row:
        return _answers(question, retriever.search(question.text, contexts), llm)

    jobs = [(_key(question), lambda question=question: row(question)) for question in questions]
    jobs += [(_key(one) + WRITTEN, lambda one=one: answers(one)) for one in questions[:answered]]
    run.fill(jobs, len(jobs), progress)


def examples(questions: Sequence[Question], run: Run[str], corpus: Mapping[str, Passage]) -> list[Example]:
    """The questions as examples to train on, in their order; `corpus` has the passages by id."""
    return [
        _example(question, run.rows[_key(question)], run.rows.get(_key(question) + WRITTEN), corpus)
        for question in questions
    ]


def by_words(questions: Sequence[Question], retriever: Retriever, contexts: int, progress: Progress) -> list[Example]:
    """The questions as examples, without a generator: a passage makes an answer likely if one of them stands in it."""
    found = []
    for done, question in enumerate(questions):
        progress(done, len(questions))
        passages = tuple(retriever.search(question.text, contexts))
        logs = tuple(STANDS if _stands(question.answers, passage) else LACKS for passage in passages)
        found.append(Example(question.text, passages, logs, WITHOUT))
    progress(len(questions), len(questions))
    return found


def _stands(answers: Sequence[str], passage: Passage) -> bool:
    text = f" {normalise(passage.title)} {normalise(passage.text)} "
    return any(f" {answer} " in text for answer in map(normalise, answers) if answer)


def _key(question: Question) -> str:
    """An id may stand for something else in another file: the question and the answer say what was scored."""
    return sha256(f"{question.id}\n{question.text}\n{question.answers[0]}".encode("utf-8", "replace")).hexdigest()[:16]


def _row(question: Question, passages: Sequence[Passage], llm: LLM) -> Row:
    error, found, without = "", [-inf] * len(passages), -inf
    try:
        prompts = [fit_passage(PROMPT, llm, ROOM, question.text, passage, examples=False) for passage in passages]
        prompts.append(render(ALONE, question=question.text))
        # the first of the accepted answers, as in the paper
        *found, without = llm.score([(prompt, question.answers[0]) for prompt in prompts], Event())
    except UtteranceError as refusal:
        error = str(refusal)
    return {
        "id": _key(question),
        "question": question.text,
        "passages": [passage.id for passage in passages],
        "log_likelihoods": [one if isfinite(one) else None for one in found],
        "without": without if isfinite(without) else None,
        "error": error,
    }


def _answers(question: Question, passages: Sequence[Passage], llm: LLM) -> Row:
    found: list[tuple[str, float]] = []
    try:
        prompts = [fit_passage(PROMPT, llm, ROOM, question.text, passage, examples=False) for passage in passages]
        for completion in llm.complete(prompts, Options(max_tokens=ROOM), Event()):
            said = "" if says_unknown(completion.text) else completion.text.strip()
            found.append((said, sum(completion.logprobs)))
    except UtteranceError:
        found = []  # the other row of this question says why
    return {"id": _key(question) + WRITTEN, "answers": found}


def _example(question: Question, row: Row, written: Row | None, corpus: Mapping[str, Passage]) -> Example:
    passages = tuple(corpus[one] for one in row["passages"])
    logs = tuple(-inf if one is None else one for one in row["log_likelihoods"])
    without = -inf if row["without"] is None else row["without"]
    answers = tuple((text, log) for text, log in written["answers"]) if written else ()
    return Example(question.text, passages, logs, without, answers, question.answers if answers else ())
