"""What there is of each kind follows from the files: settings and commands know just those, and each is whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from assistant import settings
from assistant.errors import SettingsError
from assistant.judges.relevance import estimators
from assistant.registry import variants

ROOT = Path(__file__).parents[1]
# What a module of each kind has to have.
HAS: dict[variants.Kind, set[str]] = {
    "loops": {"run", "TITLE", "SUMMARY"},
    "strategies": {"run", "TITLE", "SUMMARY"},
    "retrievers": {"opened", "TITLE", "SUMMARY", "ENCODES", "WAITS"},
    "backends": {"fitness", "load", "OWN_PROCESS"},
    "support judges": {"judge"},
    "readers": {"read", "SUFFIXES", "RECORDS"},
}
NAMED = {
    "llm.backend": settings.Backend,
    "retrieve.retriever": settings.RetrieverName,
    "relevance.estimator": settings.EstimatorName,
    "turn.support": settings.SupportName,
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in HAS for name in variants.names(kind)])
def test_a_file_has_what_its_kind_needs(kind: variants.Kind, name: str) -> None:
    assert HAS[kind] <= set(vars(variants.module(kind, name)))


@pytest.mark.parametrize("name", variants.names("estimators"))
def test_an_estimator_is_of_one_kind(name: str) -> None:
    kinds = (estimators.PromptedModule, estimators.TrainedModule, estimators.AdapterModule)
    assert sum(isinstance(estimators.named(name), kind) for kind in kinds) == 1


@pytest.mark.parametrize("kind", [*HAS, "estimators"])
def test_a_name_without_a_file_is_refused_with_those_there_are(kind: variants.Kind) -> None:
    with pytest.raises(
        SettingsError, match=rf"'nothing' is not one of the {kind}; there are: .*{variants.names(kind)[0]}"
    ):
        variants.module(kind, "nothing")


@pytest.mark.parametrize("key", NAMED)
def test_settings_refuse_it_and_name_those_there_are(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section, name = key.split(".")
    monkeypatch.delenv(f"{settings.PREFIX}{section}__{name}".upper(), raising=False)
    (tmp_path / "s.toml").write_text(f"[{section}]\n{name} = 'nothing'\n")
    with pytest.raises(SettingsError) as refused:
        settings.load(tmp_path / "s.toml")
    assert all(f"'{one}'" in str(refused.value) for one in get_args(NAMED[key]))


def test_names_are_those_of_the_files_and_told_without_importing_them() -> None:
    script = (
        "import sys; from assistant import settings; from typing import get_args\n"
        "print(*get_args(settings.Backend), *get_args(settings.RetrieverName))\n"
        "print(*(name for name in sys.modules if '.backends' in name or '.retrievers' in name))\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    told, imported = done.stdout.split("\n")[:2]
    assert {"llama.cpp", "openvino", "transformers", "bm25", "dense", "hybrid"} <= set(told.split())
    assert imported == ""
