"""The small models as OpenVINO runs them: what torch would say, without torch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from safetensors.numpy import load_file, save_file

from assistant.judges import cross_encoder
from assistant.judges.cross_encoder import PairReader
from assistant.judges.support.trained import SHIPPED
from assistant.llm import bert
from assistant.llm.bert import Bert, UnfitError, logit, mean

pytest.importorskip("openvino")
pytest_plugins = ["tests.fixtures_relevance"]
PAIRS = [
    ("What holds protein?", "Lentils: Rich in protein, they are eaten everywhere. " * 20),
    ("Who won? Qatar won.", "Qatar was the host."),
    ("", "日本 🙂"),
]
# Logits of the shipped judges lie between -4 and 4; where the processor multiplies bf16, both read in three digits.
CLOSE = 0.06


def test_a_judge_says_what_torch_says() -> None:
    found = PairReader(SHIPPED).logits(PAIRS, 8, Event())
    torch = cross_encoder.load(SHIPPED)
    assert found == pytest.approx(list(map(float, torch.predict(PAIRS, activation_fn=lambda x: x))), abs=CLOSE)
    assert PairReader(SHIPPED).logits(PAIRS[:1], 8, Event()) == pytest.approx(found[:1], abs=CLOSE)


def test_judges_and_estimators_import_nothing_of_torch() -> None:
    """Which would take the page 0.2 GB and seconds."""
    script = f"""if True:
        import sys
        from threading import Event
        from assistant.judges.cross_encoder import PairReader
        from assistant.judges.relevance.load import chosen
        from assistant.judges.support.trained import SHIPPED
        from assistant.protocols import silent
        from assistant.settings import RelevanceSettings, Settings
        assert len(PairReader(SHIPPED).logits({PAIRS!r}, 8, Event())) == 3
        assert chosen(Settings(relevance=RelevanceSettings(estimator="cross_encoder")), silent)
        print(*[name for name in ("torch", "transformers", "sentence_transformers") if name in sys.modules])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    "change", [{"model_type": "roberta"}, {"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_another_network_is_left_to_torch(tiny_cross_encoder: Path, tmp_path: Path, change: dict[str, str]) -> None:
    folder = tmp_path / "other"
    shutil.copytree(tiny_cross_encoder, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UnfitError, match="no plain BERT"):
        Bert(folder, load_file(folder / "model.safetensors"), 64, logit)
    if change != {"model_type": "roberta"}:  # whose tokenizer is another
        assert len(PairReader(folder).logits(PAIRS, 8, Event())) == 3


def test_missing_weights_and_a_gpu_are_told(
    tiny_cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = load_file(tiny_cross_encoder / "model.safetensors")
    half = {name: weight for name, weight in weights.items() if "output" not in name}
    with pytest.raises(UnfitError, match=r"attention\.output"):
        Bert(tiny_cross_encoder, half, 64, logit)
    folder = tmp_path / "half"
    shutil.copytree(tiny_cross_encoder, folder)
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    assert PairReader(folder)  # torch makes up what is missing, as it did before
    monkeypatch.setattr(bert, "sees_gpu", lambda: True)
    with pytest.raises(UnfitError, match="there is a GPU"):
        Bert(tiny_cross_encoder, weights, 64, logit)


def test_means_have_length_one_and_do_not_depend_on_neighbours(tiny_cross_encoder: Path) -> None:
    tiny = Bert(tiny_cross_encoder, load_file(tiny_cross_encoder / "model.safetensors"), 16, mean)
    texts = ["protein", "what holds protein " * 40, ""]
    rows = tiny(texts)
    assert rows.shape == (3, tiny.width)
    assert (rows**2).sum(axis=1) == pytest.approx(1, abs=1e-4)
    assert tiny(texts[:1])[0] == pytest.approx(rows[0], abs=0.02)
    assert tiny.length == 16
    assert tiny.count(texts[0]) == 3
    assert tiny.count(texts[1]) > 40
