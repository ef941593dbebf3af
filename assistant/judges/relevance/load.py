"""Loads a relevance estimator by name, with its calibration and its second score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event

from assistant.errors import ModelError, SettingsError
from assistant.judges.adapted import CONFIG, encoder
from assistant.judges.relevance import estimators
from assistant.judges.relevance.cached_estimator import CachedEstimator
from assistant.judges.relevance.calibration import CalibratedEstimator, Calibration
from assistant.judges.stand_ins import Instead, logged
from assistant.llm.model_folders import is_encoder_decoder, name_of
from assistant.protocols import LLM, Embedder, Estimator, EstimatorOf, Progress, silent
from assistant.settings import Settings
from assistant.types import Passage

BY_LLM, BY_COSINE, LARGE = "llm", "cosine", "large"
SHIPPED = Path(__file__).parent / "shipped"
CALIBRATION = "calibration.json"


def load(name: str, llm: Callable[[], LLM], settings: Settings, progress: Progress) -> Estimator:
    """The chat model (`llm`), or a trained one: a folder, a hub id or a name of the catalogue, fetched if need be.

    "cosine" compares embeddings, as a baseline; "shipped" is the cross-encoder that comes with Sequitur, and "large"
    the larger one on top of it. The configuration in a folder says what kind of model the folder holds.

    Raises:
        ModelError: it can't be fetched or loaded, or is neither a cross-encoder nor a T5.
    """
    if name == BY_LLM:
        from assistant.judges.relevance.estimators.llm import LlmEstimator  # noqa: PLC0415

        return LlmEstimator(llm())
    if name == BY_COSINE:
        from assistant.judges.relevance.cosine import CosineEstimator  # noqa: PLC0415
        from assistant.llm.embedder import SentenceEmbedder  # noqa: PLC0415

        return CosineEstimator(SentenceEmbedder(_model_folder(settings.embedder.model, settings, progress)))
    return _estimator_in(_estimator_folder(name, settings, progress), None, settings, progress)


def load_calibrated(
    name: str, calibration: Path | None, llm: Callable[[], LLM], settings: Settings, progress: Progress
) -> Estimator:
    """As `load`, calibrated by this file, or else by the one in the model's folder, if there is one.

    Raises:
        ModelError: as `load`; or the calibration can't be read or belongs to another estimator.
    """
    estimator = load(name, llm, settings, progress)
    has_folder = name not in (BY_LLM, BY_COSINE)
    return _calibrated(
        estimator, calibration or (_calibration_in(_estimator_folder(name, settings, progress)) if has_folder else None)
    )


def chosen(
    settings: Settings, progress: Progress, embedder: Embedder | None = None, instead: Instead = logged
) -> EstimatorOf | None:
    """The estimator that the settings name, calibrated if there is a calibration; None for none.

    If it is blended with an embedder's cosine, `embedder` is used if it is the right one; otherwise the right one is
    loaded, too. If a smaller estimator replaces it, `instead` is called.

    Raises:
        SequiturError: it can't be loaded; the message says what to do.
    """
    knobs = settings.relevance
    if knobs.estimator == "none":
        return None
    module = estimators.named(knobs.estimator)
    if isinstance(module, estimators.PromptedModule):
        asking, calibration_path = module.asking, Path(knobs.calibration) if knobs.calibration else None
        return lambda llm: _calibrated(asking(llm), calibration_path)
    estimator = _trained_estimator(module, settings, progress, embedder, instead)
    return lambda _: estimator


def _trained_estimator(
    module: estimators.TrainedModule | estimators.AdapterModule,
    settings: Settings,
    progress: Progress,
    embedder: Embedder | None,
    instead: Instead,
) -> Estimator:
    """The trained estimator that is set, or the shipped one if the larger can't be loaded."""
    knobs, folder = settings.relevance, module.SHIPPED
    if knobs.model:
        folder = _model_folder(knobs.model, settings, progress)
    if folder is None:
        raise SettingsError(
            f"No {knobs.estimator} estimator comes with Sequitur; set relevance.model to the folder of one."
        )
    try:
        judge = _estimator_in(folder, embedder, settings, progress)
    except ModelError as error:
        if knobs.model or not isinstance(module, estimators.AdapterModule):
            raise
        instead("relevance", error)
        folder, judge = SHIPPED, _estimator_in(SHIPPED, embedder, settings, progress)
    return _calibrated(_cached(judge), Path(knobs.calibration) if knobs.calibration else _calibration_in(folder))


def _cached(estimator: Estimator) -> Estimator:
    """The estimator with a cache; if it has two stages, each stage has its own.

    The joint estimate of two stages depends on the other texts in the list, so it mustn't be reused for another list.
    """
    from assistant.judges.relevance.blend import TwoStageEstimator  # noqa: PLC0415

    if isinstance(estimator, TwoStageEstimator):
        return estimator.with_stages(CachedEstimator)
    return CachedEstimator(estimator)


def _estimator_in(folder: Path, embedder: Embedder | None, settings: Settings, progress: Progress) -> Estimator:
    """The estimator of a folder, blended with a second score if it has a blend."""
    if (folder / CONFIG).exists():
        return _two_stage(folder, embedder, settings, progress)
    judge = trained("seq2seq" if is_encoder_decoder(folder) else "cross_encoder", folder)
    return _blended(judge, folder, embedder, settings, progress)


def _two_stage(folder: Path, embedder: Embedder | None, settings: Settings, progress: Progress) -> Estimator:
    """The adapter of this folder on its encoder, which reads the passages that the shipped estimator finds best."""
    from assistant.judges.relevance.blend import NAME, Blend, TwoStageEstimator  # noqa: PLC0415
    from assistant.judges.relevance.estimators import large  # noqa: PLC0415

    judge = large.added(folder, _estimator_name(folder), encoder(settings, progress))
    quick = _estimator_in(SHIPPED, embedder, settings, progress)
    return TwoStageEstimator(judge, quick, Blend.load(folder / NAME))


def parts_of_blend(
    folder: Path, embedder: Embedder, settings: Settings
) -> tuple[Estimator, Callable[[str, Sequence[Passage]], list[float]], str]:
    """The estimator of a folder, the second score that is blended with it, and that score's name.

    Raises:
        ModelError: one of them can't be loaded.
    """
    from assistant.judges.relevance.cosine import cosines  # noqa: PLC0415
    from assistant.judges.relevance.estimators import large  # noqa: PLC0415

    if (folder / CONFIG).exists():
        quick = _estimator_in(SHIPPED, embedder, settings, silent)

        def quick_scores(question: str, passages: Sequence[Passage]) -> list[float]:
            return [estimate.score for estimate in quick.estimate(question, passages, Event())]

        return large.added(folder, _estimator_name(folder), encoder(settings, silent)), quick_scores, quick.name
    judge = trained("seq2seq" if is_encoder_decoder(folder) else "cross_encoder", folder)
    return judge, partial(cosines, embedder), embedder.name


def trained(kind: str, folder: Path) -> Estimator:
    """The estimator of a folder without a blend, of a trained kind.

    Raises:
        ModelError: it can't be loaded, or is another kind of model.
    """
    module = estimators.named(kind)
    assert isinstance(module, estimators.TrainedModule)  # noqa: S101 - callers know
    return module.trained(folder, _estimator_name(folder))


def _estimator_name(folder: Path) -> str:
    if SHIPPED.parents[1] in folder.parents:  # it comes with Sequitur
        return folder.name
    from assistant.judges.relevance.blend import NAME  # noqa: PLC0415

    return name_of(folder, NAME)


def _blended(
    judge: Estimator, folder: Path, embedder: Embedder | None, settings: Settings, progress: Progress
) -> Estimator:
    from assistant.judges.relevance.blend import NAME, Blend, BlendedEstimator  # noqa: PLC0415

    if not (folder / NAME).exists():
        return judge
    blend = Blend.load(folder / NAME)
    return BlendedEstimator(judge, _embedder(blend.beside, embedder, settings, progress), blend)


def _embedder(name: str, embedder: Embedder | None, settings: Settings, progress: Progress) -> Embedder:
    if embedder is not None and embedder.name == name:
        return embedder
    from assistant.llm.embedder import SentenceEmbedder  # noqa: PLC0415

    configured_folder = _model_folder(settings.embedder.model, settings, progress)
    return SentenceEmbedder(
        configured_folder if name_of(configured_folder) == name else _embedder_folder(name, settings, progress)
    )


def _embedder_folder(name: str, settings: Settings, progress: Progress) -> Path:
    try:
        return _model_folder(name, settings, progress)
    except ModelError as error:
        raise ModelError(f"This estimator needs the embedder '{name}'; name it as embedder.model. ({error})") from error


def _calibrated(estimator: Estimator, calibration: Path | None) -> Estimator:
    return CalibratedEstimator(estimator, Calibration.load(calibration, estimator.name)) if calibration else estimator


def _calibration_in(folder: Path) -> Path | None:
    path = folder / CALIBRATION
    return path if path.exists() else None


def _estimator_folder(name: str, settings: Settings, progress: Progress) -> Path:
    if name == LARGE:
        from assistant.judges.relevance.estimators.large import FOLDER  # noqa: PLC0415

        return FOLDER
    return _model_folder("" if name == SHIPPED.name else name, settings, progress)


def _model_folder(name: str, settings: Settings, progress: Progress) -> Path:
    if not name:
        return SHIPPED
    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415

    return Catalogue.load().resolve(name, settings, progress)
