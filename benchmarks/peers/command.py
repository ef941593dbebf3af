"""`bench peers`: other programs of this kind beside Sequitur, on the same questions, documents, model and embedder."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.experiment import RunOptions, embedder_of
from assistant.commands.progress_bars import with_bar
from assistant.errors import DataError
from assistant.evaluation.looked_at import looked_at_ids
from assistant.evaluation.scenarios import read_scenarios
from assistant.experiment.datasets import fingerprint, read_models, read_questions, sample
from assistant.experiment.options import Seed
from assistant.library.corpus import load_corpus
from assistant.llm.catalogue import Catalogue
from assistant.llm.load import model_of as model_meant
from assistant.settings import Settings
from benchmarks.peers.asked import SystemProcess, command_of, list_systems
from benchmarks.peers.stand import standing
from benchmarks.peers.task import Peers, ReadReply, Systems, Work, interleaved, of_scenario
from benchmarks.peers.wire import Document


def peers(  # noqa: PLR0913 - a command's options
    *,
    corpus: Annotated[Path | None, typer.Option(help="Documents: a .jsonl[.gz] file of {id, title, contents}.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help="Questions: a .jsonl[.gz] file of {id, question, answers, gold}."),
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option(help="Instead: scenarios with documents of their own, without facts or history."),
    ] = None,
    passages: Annotated[
        int, typer.Option(min=1, help="Documents of the library: those that answer the questions, and others.")
    ] = 300,
    limit: Annotated[int, typer.Option(min=1, help="Questions that nobody has looked at.")] = 40,
    seed: Seed = 0,
    system: Annotated[
        list[str] | None, typer.Option(help="A system to ask; may be repeated.", show_default="all")
    ] = None,
    environments: Annotated[
        Path | None,
        typer.Option(
            envvar="PEERS_ENVIRONMENTS", help="The folder that has a virtual environment for each system by its name."
        ),
    ] = None,
    read: Annotated[
        Path | None,
        typer.Option(help="What a person read: JSONL of {system, id, admitted}, of replies that admit not to know."),
    ] = None,
    patience: Annotated[float, typer.Option(min=1, help="Seconds that a reply may take.")] = 600,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the model's server.")] = 2,
    running: RunOptions,
) -> None:
    """Ask Sequitur and others the same questions about the same documents, with one model over one server.

    Each system is a process with packages of its own. Questions go to all of them before the next one is asked.
    """
    settings = running.load_settings()
    system_names = system or list_systems()
    commands = {name: command_of(name, environments) for name in system_names}
    works, source_claim = (
        _scenarios(scenarios, limit, seed) if scenarios else _draw_questions(corpus, questions, passages, limit, seed)
    )
    claim = {**source_claim, "seed": seed, "model": model_meant(settings), "embedder": settings.embedder.model}
    task = Peers(interleaved(system_names, works), claim, _admissions(read), seed)
    with ExitStack() as stack:
        running.perform(task, lambda: stack.enter_context(_systems(commands, settings, patience, threads)))


@contextmanager
def _systems(commands: dict[str, list[str]], settings: Settings, patience: float, threads: int) -> Iterator[Systems]:
    resolve = Catalogue.load().resolve
    path = with_bar("Language model", resolve, model_meant(settings), settings)
    tokenizer = with_bar("Tokenizer", resolve, settings.embedder.model, settings)
    with standing(path, embedder_of(settings), tokenizer, threads) as stand:
        systems = {name: SystemProcess(name, command, stand, patience) for name, command in commands.items()}
        try:
            yield Systems(systems, stand)
        finally:
            for system in systems.values():
                system.close()


def _draw_questions(
    corpus: Path | None, questions: Path | None, passages: int, limit: int, seed: int
) -> tuple[list[Work], dict[str, object]]:
    """Questions that nobody has looked at, all about one library.

    Raises:
        DataError: a file is missing or can't be read, or has no such questions.
    """
    if corpus is None or questions is None:
        raise DataError("What is to be asked? Give --corpus and --questions, or --scenarios.")
    unseen_questions = sample(
        [question for question in read_questions(questions) if question.id not in looked_at_ids()], None, seed
    )
    if len(unseen_questions) < limit:
        raise DataError(
            f"{len(unseen_questions)} questions of {questions} were never looked at; give a lower --limit, or others."
        )
    documents_by_id = {passage.id: Document(passage.id, passage.title, passage.text) for passage in load_corpus(corpus)}
    gold_ids = [id_ for question in unseen_questions for id_ in question.gold]
    if lacking_ids := [id_ for id_ in gold_ids if id_ not in documents_by_id]:
        raise DataError(
            f"{corpus} lacks '{lacking_ids[0]}', which a question's gold names; give the questions' own corpus."
        )
    library = list(dict.fromkeys(gold_ids))[:passages]
    asked_questions = [question for question in unseen_questions[:limit] if set(question.gold) <= set(library)]
    if len(asked_questions) < limit:
        raise DataError(
            f"{passages} documents hold those of {len(asked_questions)} questions alone; give more --passages."
        )
    random.Random(seed).shuffle(library)  # noqa: S311 - no order of questions shows in it
    claim = {"questions": fingerprint(questions), "corpus": fingerprint(corpus), "passages": passages}
    documents = tuple(documents_by_id[id_] for id_ in library)
    return [Work(question, documents) for question in asked_questions], claim


def _scenarios(path: Path, limit: int, seed: int) -> tuple[list[Work], dict[str, object]]:
    """Scenarios that others than Sequitur can play: about documents, without facts and without what was said before.

    Raises:
        DataError: there are none.
    """
    scenarios = [
        scenario
        for scenario in read_scenarios(path).values()
        if scenario.documents and not scenario.facts and not scenario.history
    ]
    if not scenarios:
        raise DataError(f"No scenario of {path} has documents and neither facts nor history; give others.")
    return [of_scenario(scenario) for scenario in sample(scenarios, limit, seed)], {"scenarios": fingerprint(path)}


def _admissions(path: Path | None) -> dict[tuple[str, str], bool]:
    replies = read_models(path, ReadReply, "no reply that was read") if path else []
    return {(reply.system, reply.id): reply.admitted for reply in replies}
