"""What a generator makes of each passage: log P_G(a|q,c_j), kept on disk, to train relevance estimators with.

One row, where minus infinity is written as null, which JSON can hold:

    {"id": "0f3a...", "question": "What is ...?", "passages": ["nq00001", ...], "log_likelihoods": [-1.25, ...],
     "without": -9.5, "error": ""}

and for questions to choose the best epoch by, another with what it writes, and how likely that is:

    {"id": "0f3a...-answers", "answers": [["Lima", -0.1], ...]}

`examples_by_words` needs no generator: an answer is likely where it stands.
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

PASSAGE_PROMPT, CLOSED_BOOK_PROMPT = "factoid/post_fusion", "factoid/closed_book"
# What `examples_by_words` holds likely: an answer that stands in the passage, one that doesn't, and one without any
# passage.
STATED_LOG_LIKELIHOOD, UNSTATED_LOG_LIKELIHOOD, CLOSED_BOOK_LOG_LIKELIHOOD = log(0.9), log(0.01), log(0.1)
# Tokens that an answer may have; the prompt leaves them room.
MAX_ANSWER_TOKENS = 64
ANSWERS_SUFFIX = "-answers"


def open_run(folder: Path, corpus: Path, contexts: int, model: str) -> Run[str]:
    """The folder that keeps them, for any questions on this corpus.

    Raises:
        DataError: the folder holds those of another corpus, model, prompt or number of contexts.
    """
    prompt = sha256(
        b"".join((FOLDER / f"{name}.j2").read_bytes() for name in (PASSAGE_PROMPT, CLOSED_BOOK_PROMPT))
    ).hexdigest()
    claim = {"corpus": fingerprint(corpus), "model": model, "contexts": contexts, "prompt": prompt}
    return Run(folder, claim, lambda row: str(row["id"]))


def score_missing_rows(
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
        return _score_row(question, retriever.search(question.text, contexts), llm)

    def answers(question: Question) -> Row:
        return _answers_row(question, retriever.search(question.text, contexts), llm)

    jobs = [(_row_key(question), lambda question=question: row(question)) for question in questions]
    jobs += [
        (_row_key(question) + ANSWERS_SUFFIX, lambda question=question: answers(question))
        for question in questions[:answered]
    ]
    run.fill(jobs, len(jobs), progress)


def examples(questions: Sequence[Question], run: Run[str], corpus: Mapping[str, Passage]) -> list[Example]:
    """The questions as examples to train on, in their order; `corpus` has the passages by id."""
    return [
        _example(question, run.rows[_row_key(question)], run.rows.get(_row_key(question) + ANSWERS_SUFFIX), corpus)
        for question in questions
    ]


def examples_by_words(
    questions: Sequence[Question], retriever: Retriever, contexts: int, progress: Progress
) -> list[Example]:
    """The questions as examples, without a generator: a passage makes an answer likely if one of them stands in it."""
    labelled_examples = []
    for done, question in enumerate(questions):
        progress(done, len(questions))
        passages = tuple(retriever.search(question.text, contexts))
        log_likelihoods = tuple(
            STATED_LOG_LIKELIHOOD if _has_answer(question.answers, passage) else UNSTATED_LOG_LIKELIHOOD
            for passage in passages
        )
        labelled_examples.append(Example(question.text, passages, log_likelihoods, CLOSED_BOOK_LOG_LIKELIHOOD))
    progress(len(questions), len(questions))
    return labelled_examples


def _has_answer(answers: Sequence[str], passage: Passage) -> bool:
    text = f" {normalise(passage.title)} {normalise(passage.text)} "
    return any(f" {answer} " in text for answer in map(normalise, answers) if answer)


def _row_key(question: Question) -> str:
    """An id may stand for something else in another file: the question and the answer say what was scored."""
    return sha256(f"{question.id}\n{question.text}\n{question.answers[0]}".encode("utf-8", "replace")).hexdigest()[:16]


def _score_row(question: Question, passages: Sequence[Passage], llm: LLM) -> Row:
    error, log_likelihoods, without = "", [-inf] * len(passages), -inf
    try:
        prompts = [
            fit_passage(PASSAGE_PROMPT, llm, MAX_ANSWER_TOKENS, question.text, passage, examples=False)
            for passage in passages
        ]
        prompts.append(render(CLOSED_BOOK_PROMPT, question=question.text))
        # the first of the accepted answers, as in the paper
        *log_likelihoods, without = llm.score([(prompt, question.answers[0]) for prompt in prompts], Event())
    except UtteranceError as refusal:
        error = str(refusal)
    return {
        "id": _row_key(question),
        "question": question.text,
        "passages": [passage.id for passage in passages],
        "log_likelihoods": [value if isfinite(value) else None for value in log_likelihoods],
        "without": without if isfinite(without) else None,
        "error": error,
    }


def _answers_row(question: Question, passages: Sequence[Passage], llm: LLM) -> Row:
    answers: list[tuple[str, float]] = []
    try:
        prompts = [
            fit_passage(PASSAGE_PROMPT, llm, MAX_ANSWER_TOKENS, question.text, passage, examples=False)
            for passage in passages
        ]
        for completion in llm.complete(prompts, Options(max_tokens=MAX_ANSWER_TOKENS), Event()):
            answer = "" if says_unknown(completion.text) else completion.text.strip()
            answers.append((answer, sum(completion.logprobs)))
    except UtteranceError:
        answers = []  # the other row of this question says why
    return {"id": _row_key(question) + ANSWERS_SUFFIX, "answers": answers}


def _example(question: Question, row: Row, written: Row | None, corpus: Mapping[str, Passage]) -> Example:
    passages = tuple(corpus[passage_id] for passage_id in row["passages"])
    log_likelihoods = tuple(-inf if value is None else value for value in row["log_likelihoods"])
    without = -inf if row["without"] is None else row["without"]
    answers = tuple((text, log_likelihood) for text, log_likelihood in written["answers"]) if written else ()
    return Example(question.text, passages, log_likelihoods, without, answers, question.answers if answers else ())
