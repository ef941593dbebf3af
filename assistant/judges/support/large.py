"""The larger judge of support: MPNet, which is fetched once, with an adapter that comes with Sequitur.

It has five times the weights of the judge that comes with Sequitur (`trained`), has learned from more pairs, and judges
better (docs/results/support.md). If it can't be fetched, the other one judges.
"""

from __future__ import annotations

from pathlib import Path

from assistant.errors import ModelError
from assistant.judges.adapted import CONFIG, encoder
from assistant.judges.stand_ins import Instead, logged
from assistant.judges.support import trained
from assistant.protocols import Embedder, Progress, SupportJudgeOf
from assistant.settings import Settings

SHIPPED = trained.SHIPPED.with_name("support-large")


def judge(
    settings: Settings, embedder: Embedder | None, progress: Progress, instead: Instead = logged
) -> SupportJudgeOf:
    """The larger judge, fetched if need be, loaded once for all turns; where that fails, the smaller one.

    Raises:
        ModelError: the files of neither can be used.
    """
    try:
        support = opened(SHIPPED, settings, progress)
    except ModelError as error:
        instead("support", error)
        return trained.judge(settings, embedder, progress)
    return lambda _: support


def opened(folder: Path, settings: Settings, progress: Progress) -> trained.Support:
    """The judge in a folder; if the folder holds only what is added to a base, the base is fetched.

    Raises:
        ModelError: the folder holds no judge, or the base can't be fetched.
    """
    is_adapter = (folder / CONFIG).exists()
    return trained.Support(folder, encoder(settings, progress) if is_adapter else None)
