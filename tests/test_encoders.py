"""Encoders by the form of their folder, with tiny models that are made here: real classes, random weights."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from assistant.errors import ModelError
from assistant.llm.embedder import SentenceEmbedder
from assistant.parts import load_encoder
from assistant.retrieve import encoders
from assistant.retrieve.dense import Dense, build_dense
from assistant.retrieve.encoder_pieces import Encoder
from assistant.retrieve.encoders import MOST_TOKENS, Contriever, Dpr, SentenceBert, open_encoder
from assistant.settings import RetrieveSettings, Settings
from assistant.types import Passage
from tests.scripted import by_id

TEXTS = ["Cats\na cat sat on the mat", "Dogs\na dog ran", "Rivers\nthe river runs to the sea and is long"]
WORDS = sorted({word.lower() for text in TEXTS for word in text.split()})
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def tiny(folder: Path, architecture: str, seed: int = 0, window: int = 64, **sizes: int) -> Path:
    """A model of this architecture with random weights, saved with its tokenizer as the hub has it."""
    import torch
    import transformers

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    torch.manual_seed(seed)
    kind = transformers.DPRConfig if architecture.startswith("DPR") else transformers.BertConfig
    # Large weights, so that texts differ.
    config = kind(vocab_size=5 + len(WORDS), max_position_embeddings=window, initializer_range=0.5, **SIZES | sizes)
    model = getattr(transformers, "BertModel" if architecture == "Contriever" else architecture)(config)
    model.save_pretrained(folder)
    transformers.BertTokenizer.from_pretrained(str(folder)).save_pretrained(folder)
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**told, "architectures": [architecture]}))
    return folder


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("encoders")
    return {
        "contexts": tiny(folder / "contexts", "DPRContextEncoder", 1),
        "questions": tiny(folder / "questions", "DPRQuestionEncoder", 2),
        "projected": tiny(folder / "projected", "DPRQuestionEncoder", 2, projection_dim=16),
        "contriever": tiny(folder / "contriever", "Contriever", 3),
        "sentence": tiny(folder / "sentence", "BertModel", 4, window=32),
    }


@pytest.fixture(params=[True, False], ids=["bf16", "full"])
def precision(request, monkeypatch) -> float:
    """How far vectors may be off; half precision runs, if slowly, on every CPU."""
    monkeypatch.setattr(encoders, "has_bf16", lambda: request.param)
    return 0.05 if request.param else 1e-5


def of_transformers(folder: Path, architecture: str, *texts: str):
    """What the library gives for one text alone, or a pair."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        return getattr(transformers, architecture).from_pretrained(folder)(**tokenizer(*texts, return_tensors="pt"))


def test_dpr_encodes_titles_apart_and_questions_by_their_own_encoder(models, precision):
    dpr = open_encoder(models["contexts"], models["questions"])
    assert isinstance(dpr, Dpr)
    assert isinstance(dpr, Encoder)
    expected = [of_transformers(models["contexts"], "DPRContextEncoder", *text.split("\n")) for text in TEXTS]
    np.testing.assert_allclose(
        dpr.encode(TEXTS), np.concatenate([one.pooler_output for one in expected]), atol=precision * 5
    )
    asked = of_transformers(models["questions"], "DPRQuestionEncoder", "the cat").pooler_output
    np.testing.assert_allclose(dpr.encode_queries(["the cat"]), asked, atol=precision * 5)
    assert not np.allclose(dpr.encode_queries(["the cat"]), dpr.encode(["\nthe cat"]), atol=0.1)


def test_contriever_is_mean_pooled_and_not_normalised(models, precision):
    contriever = open_encoder(models["contriever"])
    assert isinstance(contriever, Contriever)
    expected = [of_transformers(models["contriever"], "BertModel", one).last_hidden_state.mean(1) for one in TEXTS]
    np.testing.assert_allclose(contriever.encode(TEXTS), np.concatenate(expected), atol=precision)
    np.testing.assert_allclose(contriever.encode_queries(TEXTS[:1]), expected[0], atol=precision)


def test_sentence_bert_has_vectors_of_length_1(models, precision):
    encoder = open_encoder(models["sentence"])
    assert isinstance(encoder, SentenceBert)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS), axis=1), 1, atol=1e-2)
    np.testing.assert_allclose(encoder.encode(TEXTS), encoder.encode_queries(TEXTS), atol=precision)


def test_no_texts_and_odd_texts(models):
    for one in (open_encoder(models["contriever"]), open_encoder(models["contexts"], models["questions"])):
        assert one.encode([]).shape == (0, 32)
        assert np.isfinite(one.encode(["", "\n", "cat \ud800", "the " * 500, "日本語"])).all()


def test_each_encoder_counts_the_tokens_that_it_reads(models):
    text = "Cats\na cat sat"
    assert (open_encoder(models["sentence"]).window, open_encoder(models["sentence"]).count(text)) == (32, 6)
    assert (open_encoder(models["contriever"]).window, open_encoder(models["contriever"]).count(text)) == (64, 6)
    dpr = open_encoder(models["contexts"], models["questions"])
    assert (dpr.window, dpr.count(text)) == (64, 7), "[SEP] stands between title and text"
    assert dpr.count("\ud800") >= 3


def test_a_passage_beyond_the_window_is_encoded_in_pieces(models, tmp_path):
    encoder = open_encoder(models["contriever"])
    passages = [
        Passage("long", "", "A cat sat on the mat. " * 30 + "The river is long."),
        Passage("b", "", "a dog ran"),
    ]
    build_dense(tmp_path, passages, encoder, lambda done, total: None)
    found = Dense(tmp_path, encoder, by_id(passages))
    assert found.pieces == {"long": 4, "b": 1}
    assert found.cut == 1


def test_a_large_window_is_not_filled(tmp_path):
    assert open_encoder(tiny(tmp_path / "wide", "BertModel", window=1024)).window == MOST_TOKENS


@pytest.mark.parametrize("exact", [100, 0], ids=["exact", "lists"])
def test_dpr_retrieves_by_the_inner_product(models, tmp_path, exact):
    dpr = open_encoder(models["contexts"], models["questions"])
    passages = [Passage(str(n), *text.split("\n")) for n, text in enumerate(TEXTS)]
    build_dense(tmp_path, passages, dpr, lambda done, total: None, exact=exact)
    found = Dense(tmp_path, dpr, by_id(passages)).search("the river", 3)
    products = dpr.encode(TEXTS) @ dpr.encode_queries(["the river"])[0]
    assert [one.id for one in found] == [str(n) for n in np.argsort(-products)]
    np.testing.assert_allclose([one.score for one in found], sorted(products)[::-1], rtol=0.05)


@pytest.mark.parametrize(
    ("passages", "questions", "says"),
    [
        ("contexts", None, "encodes passages only; set retrieve.encoder"),
        ("questions", None, "encodes questions only; set retrieve.encoder"),
        ("questions", "contexts", "encodes questions only"),
        ("contexts", "contexts", "contexts is no DPR encoder of questions"),
        ("contexts", "sentence", "sentence is no DPR encoder of questions"),
        ("contexts", "projected", "vectors of different sizes"),
        ("sentence", "questions", "leave retrieve.question_encoder empty"),
        ("contriever", "questions", "leave retrieve.question_encoder empty"),
    ],
)
def test_halves_that_do_not_belong_together(models, tmp_path, passages, questions, says):
    knobs = RetrieveSettings(
        encoder=str(models[passages]), question_encoder=str(models[questions]) if questions else ""
    )
    with pytest.raises(ModelError, match=says):
        load_encoder(Settings(data_dir=tmp_path, retrieve=knobs), lambda done, total: None)


def test_the_settings_name_both_halves(models, tmp_path):
    knobs = RetrieveSettings(encoder=str(models["contexts"]), question_encoder=str(models["questions"]))
    loaded = load_encoder(Settings(data_dir=tmp_path, retrieve=knobs), lambda done, total: None)
    assert [name.rpartition("-")[0] for name in loaded.name.split()] == ["contexts", "questions"]


def test_encoders_in_folders_of_one_name_are_told_apart(models, tmp_path):
    one, other = (tmp_path / part / "model" for part in ("one", "other"))
    shutil.copytree(models["contriever"], one)
    shutil.copytree(one, other)
    weights = load_file(other / "model.safetensors")
    save_file({key: value + 1 for key, value in weights.items()}, other / "model.safetensors", {"format": "pt"})
    assert open_encoder(one).name != open_encoder(other).name
    # a fetched one has a name of its own
    one.with_name("model.checked.json").write_text("[]")
    assert open_encoder(one).name == "model"


def test_an_embedder_that_is_loaded_serves_as_it_is(models, tmp_path):
    settings = Settings(data_dir=tmp_path, retrieve=RetrieveSettings(encoder=str(models["sentence"])))
    encoder = load_encoder(settings, lambda done, total: None, SentenceEmbedder(models["contriever"], "loaded"))
    assert encoder.name == "loaded"


def test_passages_are_encoded_on_a_gpu_where_there_is_one(models, monkeypatch):
    asked = []
    monkeypatch.setattr(encoders, "SentenceEmbedder", lambda folder, device: asked.append(device) or loaded)
    loaded = SentenceEmbedder(models["sentence"])
    SentenceBert(models["sentence"], loaded)
    assert asked == []
    monkeypatch.setattr(encoders, "sees_gpu", lambda: True)
    SentenceBert(models["sentence"], loaded)
    assert asked == ["cuda"]


@pytest.mark.parametrize("name", ["contriever", "contexts"])
@pytest.mark.parametrize("damage", ["weights", "tensor", "tokenizer", "cut"])
def test_an_incomplete_model_is_refused(models, tmp_path, name, damage):
    folder = tiny(tmp_path / "broken", {"contriever": "Contriever", "contexts": "DPRContextEncoder"}[name])
    weights = folder / "model.safetensors"
    if damage == "weights":
        weights.unlink()
    elif damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "tensor":
        tensors = load_file(weights)
        lost = next(one for one in sorted(tensors) if "encoder.layer.1" in one)
        save_file({one: tensor for one, tensor in tensors.items() if one != lost}, weights, {"format": "pt"})
    else:
        for file in (*folder.glob("tokenizer*"), *folder.glob("vocab*")):
            file.unlink()
    with pytest.raises(ModelError, match=r"fetch it again"):
        open_encoder(folder, models["questions"] if name == "contexts" else None)
