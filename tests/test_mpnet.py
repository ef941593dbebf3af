"""The larger judge's network: MPNet as torch computes it, and what was learned added to an encoder."""

from __future__ import annotations

import gc
import json
import os
import shutil
from pathlib import Path
from threading import Event
from weakref import ref

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import MPNetConfig, MPNetModel
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

from assistant.errors import ModelError
from assistant.judges import cross_encoder, load
from assistant.judges.adapted import BASE, CONFIG, WEIGHTS, Adapted, added, pack
from assistant.judges.cross_encoder import PairReader
from assistant.judges.pair_model import CURVE, Curve
from assistant.judges.relevance.estimators.large import FOLDER as RELEVANCE
from assistant.judges.stand_ins import StandIns
from assistant.judges.suitability.judge import READER_LARGE
from assistant.judges.suitability.knowledge import SHIPPED as SUITABILITY
from assistant.judges.support import large, trained
from assistant.llm.mpnet import buckets
from assistant.protocols import Embedder, silent
from assistant.settings import FactSettings, Settings, TurnSettings
from assistant.training.models import load_encoder, low_rank, save

pytest.importorskip("openvino")
pytest_plugins = ["tests.fixtures_relevance"]
PAIRS = [
    ("what holds protein", "lentils"),
    ("the capital of peru", "lima is the capital of peru . " * 5),
    ("", "paris"),
]
# Where the processor multiplies bf16, both read in three digits, and here matrices are kept in int8.
CLOSE = 0.15


@pytest.fixture(scope="module")
def adapter(tiny_mpnet: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """What a training keeps, and what the trained model says of the pairs."""
    return trained_as(0, 4, tiny_mpnet, tmp_path_factory.mktemp("trained") / "model")


def trained_as(seed: int, rank: int, base: Path, folder: Path) -> tuple[Path, list[float]]:
    """The folder, with a difference of this rank as if it had been learned, and what it says of the pairs."""
    tokenizer, model = load_encoder(str(base), seed, 64)
    model = low_rank(model, rank, 1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.3)
    save(folder, model, tokenizer)
    first, second = zip(*PAIRS, strict=True)
    with torch.inference_mode():
        inputs = tokenizer(list(first), list(second), padding=True, truncation=True, return_tensors="pt")
        said = model.eval()(**inputs).logits[:, 0].tolist()
    Curve(1.0, 0.0, 0.5, "nothing", 0).save(folder / CURVE)
    return folder, said


def test_distances_fall_into_the_buckets_of_transformers() -> None:
    apart = torch.arange(-500, 501)
    assert buckets(apart.numpy(), 32).tolist() == MPNetEncoder.relative_position_bucket(apart, 32).tolist()


def test_what_was_learned_says_the_same_when_it_is_added(tiny_mpnet: Path, adapter: tuple[Path, list[float]]) -> None:
    folder, said = adapter
    assert max(said) - min(said) > 5 * CLOSE
    assert PairReader(folder, 64, tiny_mpnet).logits(PAIRS, 8, Event()) == pytest.approx(said, abs=2 * CLOSE)
    torch_says = cross_encoder.load(folder, 64, tiny_mpnet).predict(PAIRS, activation_fn=torch.nn.Identity())
    assert list(map(float, torch_says)) == pytest.approx(said, abs=CLOSE)


def test_judges_share_the_encoder_and_say_each_its_own(
    tiny_mpnet: Path, adapter: tuple[Path, list[float]], tmp_path: Path
) -> None:
    folder, said = adapter
    other, says = trained_as(1, 2, tiny_mpnet, tmp_path / "model")
    assert says != pytest.approx(said, abs=2 * CLOSE)
    one, two = Adapted(folder, tiny_mpnet, 64), Adapted(other, tiny_mpnet, 16)
    assert one.encoder is two.encoder
    for _ in range(2):
        assert one(PAIRS)[:, 0].tolist() == pytest.approx(said, abs=2 * CLOSE)
        assert two(PAIRS[:1])[0, 0] == pytest.approx(says[0], abs=2 * CLOSE)
    encoder = ref(one.encoder)
    del one, two
    gc.collect()
    assert encoder() is None


def test_what_was_fitted_to_an_adapter_is_packed_with_it_and_what_was_to_another_goes(
    adapter: tuple[Path, list[float]], tmp_path: Path
) -> None:
    folder, target = Path(shutil.copytree(adapter[0], tmp_path / "trained")), tmp_path / "packed"
    (folder / "blend.json").write_text("its own")
    target.mkdir()
    for name in (CURVE, "blend.json", "calibration.json", "README.md"):
        (target / name).write_text("another's")
    size = pack(folder, target)
    assert {file.name for file in target.iterdir()} == {CONFIG, WEIGHTS, CURVE, "blend.json", "README.md"}
    assert (target / "blend.json").read_text() == "its own"
    assert Curve.load(target / CURVE) == Curve.load(folder / CURVE)
    assert size == sum(file.stat().st_size for file in target.iterdir())


def test_only_what_learned_differs_from_the_base(tiny_mpnet: Path, adapter: tuple[Path, list[float]]) -> None:
    found, before = dict(added(adapter[0], tiny_mpnet)), load_file(tiny_mpnet / "model.safetensors")
    changed = {name for name, weight in before.items() if not np.array_equal(found[f"mpnet.{name}"], weight)}
    assert changed
    assert all(name.startswith(("encoder.layer.1.", "encoder.layer.2.")) for name in changed)
    assert {name for name in found if name.removeprefix("mpnet.") not in before} == {
        f"classifier.{layer}.{part}" for layer in ("dense", "out_proj") for part in ("weight", "bias")
    }


def test_the_encoder_in_int8_is_kept_beside_its_folder(
    tiny_mpnet: Path, adapter: tuple[Path, list[float]], tmp_path: Path
) -> None:
    folder, said = adapter
    base = Path(shutil.copytree(tiny_mpnet, tmp_path / "base"))
    kept = tmp_path / "base.int8.safetensors"

    def says() -> list[float]:
        gc.collect()  # an encoder that somebody has is not loaded again
        found: list[float] = Adapted(folder, base, 64)(PAIRS)[:, 0].tolist()
        return found

    assert says() == pytest.approx(said, abs=2 * CLOSE)
    made = kept.stat().st_mtime_ns
    says()
    assert kept.stat().st_mtime_ns == made
    kept.write_bytes(kept.read_bytes()[:-40])
    assert says() == pytest.approx(said, abs=2 * CLOSE)
    os.utime(base / "model.safetensors")  # as if it were another encoder
    made = kept.stat().st_mtime_ns
    says()
    assert kept.stat().st_mtime_ns > made
    kept.unlink()
    kept.mkdir()  # no file can be written there
    assert says() == pytest.approx(said, abs=2 * CLOSE)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("file", [WEIGHTS, CONFIG])
def test_a_difference_that_is_cut_short_is_told(
    tiny_mpnet: Path, adapter: tuple[Path, list[float]], tmp_path: Path, file: str
) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(adapter[0], broken)
    (broken / file).write_bytes((broken / file).read_bytes()[:40])
    with pytest.raises(ModelError, match=r"can't be added to .*; get both again"):
        dict(added(broken, tiny_mpnet))


def test_a_difference_to_another_encoder_is_told(
    tiny_mpnet: Path, adapter: tuple[Path, list[float]], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tiny_mpnet, other)
    MPNetModel(MPNetConfig(vocab_size=9, hidden_size=32, num_hidden_layers=1, num_attention_heads=4)).save_pretrained(
        other
    )
    with pytest.raises(ModelError, match="can't be added"):
        dict(added(adapter[0], other))


def test_the_smaller_judge_stands_in_where_the_base_cannot_be_had(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Path:
        raise ModelError("no network")

    monkeypatch.setattr("assistant.llm.catalogue.Catalogue.resolve", refused)
    support = large.judge(settings, None, silent)(None)  # type: ignore[arg-type]
    assert support.threshold == trained.Support().threshold


@pytest.mark.model
def test_that_smaller_judges_stand_in_is_told_in_a_sentence(
    settings: Settings, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> Path:
        raise ModelError("There is no network.")

    monkeypatch.setattr("assistant.llm.catalogue.Catalogue.resolve", refused)
    small, larger = (
        settings.model_copy(update={"turn": TurnSettings(support=name), "facts": FactSettings(suitability=size)})
        for name, size in (("trained", "small"), ("large", "large"))
    )
    stand_ins = StandIns()
    load.support(small, None, silent, stand_ins)
    load.suitability(small, embedder, silent, stand_ins)
    assert stand_ins.told == ""
    load.support(larger, None, silent, stand_ins)
    assert stand_ins.told == (
        "Until the next start smaller judges stand in for the larger ones, of support. There is no network."
    )
    load.suitability(larger, embedder, silent, stand_ins)
    assert "for the larger ones, of support and what suits a person. There is" in stand_ins.told


@pytest.mark.parametrize("folder", [large.SHIPPED, SUITABILITY / READER_LARGE, RELEVANCE])
def test_the_base_it_was_trained_on_is_the_one_that_is_fetched(folder: Path) -> None:
    told = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    assert told["base_model_name_or_path"] == f"sentence-transformers/{BASE}"
