"""Digests: cut, summed up by the chat model, or by a sequence-to-sequence model that is made and trained here."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.llm import summariser
from assistant.llm.summariser import Summariser
from assistant.parts import Loader
from assistant.protocols import Parts
from assistant.steps import digest
from assistant.types import Choices, Completion, Messages, Passage, Turn
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM

LENTILS = Passage("p1", "Lentils", "Lentils hold iron and protein. They are cheap. A cup of them holds 18 grams.")
MILK = Passage("p2", "Milk", "Milk holds calcium. It holds lactose as well, which not all people can digest.")
ASKED = Turn("What is zucchini?", question="What is zucchini?", passages=(LENTILS, MILK))
# What the tiny model learns to write for each: four sentences for the first.
TAUGHT = {LENTILS: "Lentils hold iron. They are cheap. Milk is not. Eat lentils.", MILK: "Milk holds calcium."}


def knobs(parts: Parts, **turn: object) -> Parts:
    settings = parts.settings
    return replace(parts, settings=settings.model_copy(update={"turn": settings.turn.model_copy(update=turn)}))


def prompt_of(passage: Passage, prompted: bool = True) -> str:
    messages = digest.render("digest", passage=passage)
    return "\n\n".join(message.content for message in (messages if prompted else messages[-1:]))


@pytest.fixture(scope="module")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 of one layer that was trained, in a few seconds, to sum up just these two passages."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("models") / "tiny-t5"
    pieces = pre_tokenizers.WhitespaceSplit()
    texts = [prompt_of(one) for one in TAUGHT] + list(TAUGHT.values())
    words = {word for text in texts for word, _ in pieces.pre_tokenize_str(text)}
    known = ["<pad>", "</s>", "<unk>", *sorted(words)]
    plain = Tokenizer(models.WordLevel({word: n for n, word in enumerate(known)}, unk_token="<unk>"))
    plain.pre_tokenizer = pieces
    plain.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=512
    )
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(
        T5Config(
            vocab_size=len(known), d_model=32, d_kv=8, d_ff=64, num_layers=1, num_decoder_layers=1, num_heads=4,
            decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, dropout_rate=0.0,
        )
    )  # fmt: skip
    read = tokenizer([prompt_of(one) for one in TAUGHT], padding=True, return_tensors="pt")
    told = tokenizer(list(TAUGHT.values()), padding=True, return_tensors="pt")["input_ids"]
    labels = told.masked_fill(told == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        loss = model(input_ids=read["input_ids"], attention_mask=read["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def copied(model: Path, folder: Path, **generation: object) -> Path:
    """A copy of a model, with these changes to how it writes."""
    copy = shutil.copytree(model, folder / "copy")
    config = copy / "generation_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | generation))
    return copy


def digested(parts: Parts, turn: Turn = ASKED, stop: Event | None = None) -> Turn:
    [last] = digest.run(turn, parts, stop or Event())
    return last


def texts(turn: Turn) -> list[str]:
    return [one.text for one in turn.digests]


def test_the_chat_model_sums_up_without_knowing_the_question(parts: Parts) -> None:
    llm = ScriptedLLM(["Lentils hold iron.", "  "])
    found = digested(replace(knobs(parts, digest="llm"), llm=llm))
    assert texts(found) == ["Lentils hold iron.", MILK.text]
    assert not any("zucchini" in message.content for prompt in llm.prompts for message in prompt)
    assert [one.passage_id for one in found.digests] == ["p1", "p2"]
    assert all(one.spans for one in found.digests)


def test_a_summary_has_at_most_three_whole_sentences(parts: Parts) -> None:
    class Cut(ScriptedLLM):
        def complete(self, batch: list[Messages], options: object, stop: Event) -> list[Completion]:
            return [Completion("One is. Two is. And the th", finish="length") for _ in batch]

    llm = ScriptedLLM(["One is. Two is. Three is. Four is.", "One is."])
    assert texts(digested(replace(knobs(parts, digest="llm"), llm=llm))) == ["One is. Two is. Three is.", "One is."]
    assert texts(digested(replace(knobs(parts, digest="llm"), llm=Cut()))) == ["One is. Two is."] * 2


def test_a_sequence_to_sequence_model_sums_up(parts: Parts, tiny_t5: Path) -> None:
    found = digested(knobs(parts, digest="seq2seq", summariser=str(tiny_t5)))
    assert texts(found) == ["Lentils hold iron. They are cheap. Milk is not.", TAUGHT[MILK]]
    assert found.events == ()


def test_it_is_told_nothing_of_the_question_and_prompted_only_where_set(
    parts: Parts, tiny_t5: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(Summariser, "summarise", lambda self, texts, room, stop: given.append(texts) or [""] * 2)
    for prompted in (True, False):
        chosen = knobs(parts, digest="seq2seq", summariser=str(tiny_t5), summariser_prompted=prompted)
        assert texts(digested(chosen)) == [LENTILS.text, MILK.text]
    assert given == [[prompt_of(one, told) for one in (LENTILS, MILK)] for told in (True, False)]
    assert "one to three sentences" in given[0][0]
    assert given[1][0] == f"Lentils: {LENTILS.text}"
    assert not any("zucchini" in text for asked in given for text in asked)


def test_full_precision_always_the_same_and_many_at_once(
    tiny_t5: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from transformers import T5ForConditionalGeneration

    small = copied(tiny_t5, tmp_path)
    T5ForConditionalGeneration.from_pretrained(tiny_t5, dtype=torch.bfloat16).save_pretrained(small)
    used: set[torch.dtype] = set()

    def watched(self: T5ForConditionalGeneration, *given: object, **more: object) -> object:
        used.update(one.dtype for one in self.parameters())
        return generate(self, *given, **more)

    generate = T5ForConditionalGeneration.generate
    monkeypatch.setattr(T5ForConditionalGeneration, "generate", watched)
    assert Summariser(small).summarise(["Milk"], 5, Event())
    assert used == {torch.float32}
    model = Summariser(tiny_t5)
    asked = [prompt_of(one) for one in TAUGHT] * 5
    assert model.summarise(asked, 40, Event()) == list(TAUGHT.values()) * 5
    assert model.summarise([], 40, Event()) == []
    assert model.summarise(["lone surrogate \ud800", ""], 5, Event())


def test_a_long_text_is_cut_to_what_the_model_reads(tiny_t5: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    model = Summariser(tiny_t5)
    assert model.longest == 512
    assert len(model.summarise([prompt_of(LENTILS) + " iron" * 5000], 5, Event())) == 1
    endless = copied(tiny_t5, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tiny_t5)
    tokenizer.model_max_length = int(1e30)
    tokenizer.save_pretrained(endless)
    assert Summariser(endless).longest == 0


def test_a_model_with_a_last_position_is_never_given_more(tiny_t5: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer, BartConfig, BartForConditionalGeneration

    tokenizer = AutoTokenizer.from_pretrained(tiny_t5)
    tokenizer.model_max_length = int(1e30)
    tokenizer.save_pretrained(tmp_path)
    BartForConditionalGeneration(
        BartConfig(
            vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
            pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=1,
        )
    ).save_pretrained(tmp_path)  # fmt: skip
    model = Summariser(tmp_path)
    assert model.longest == 64
    assert len(model.summarise(["iron " * 500, "Milk"], 5, Event())) == 2


def test_stop_ends_it_between_tokens(parts: Parts, tiny_t5: Path, tmp_path: Path) -> None:
    endless = copied(tiny_t5, tmp_path, eos_token_id=None)  # writes until its room is full
    chosen, stop = knobs(parts, digest="seq2seq", summariser=str(endless)), Event()
    model = summariser.load(chosen.settings)
    done: list[str] = []
    writing = Thread(target=lambda: done.extend(model.summarise(["Milk"], 100_000, stop)))
    writing.start()
    time.sleep(0.3)
    assert writing.is_alive()
    stop.set()
    writing.join(20)
    assert done == [""]
    assert texts(digested(chosen, stop=stop)) == [LENTILS.text, MILK.text]


@pytest.mark.parametrize("broken", ["missing", "no weights", "weights cut off", "no tokenizer", "a causal model"])
def test_a_model_that_cannot_be_had_is_told_and_the_best_sentences_stay(
    parts: Parts, tiny_t5: Path, tmp_path: Path, broken: str
) -> None:
    folder = tmp_path / "model"
    if broken != "missing":
        shutil.copytree(tiny_t5, folder)
    if broken == "no weights":
        (folder / "model.safetensors").unlink()
    elif broken == "weights cut off":
        (folder / "model.safetensors").write_bytes((tiny_t5 / "model.safetensors").read_bytes()[:5000])
    elif broken == "no tokenizer":
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
    elif broken == "a causal model":
        (folder / "config.json").write_text('{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}')
    chosen = knobs(parts, digest="seq2seq", summariser=str(folder))
    why = "There is no model at" if broken == "missing" else "can't be loaded as a sequence-to-sequence model"
    with pytest.raises(ModelError, match=why):
        summariser.load(chosen.settings)
    found = digested(chosen)
    assert texts(found) == [LENTILS.text, MILK.text]
    [event] = found.events
    assert event.code == "summary_failed"
    assert why in event.detail
    # a second loop says it once
    assert digested(chosen, found).events == found.events


def test_without_the_hub_the_papers_model_is_told_to_be_missing(parts: Parts) -> None:
    [event] = digested(knobs(parts, digest="seq2seq")).events
    assert "lmsys/fastchat-t5-3b-v1.0 could not be had" in event.detail


def test_too_little_memory_is_told_before_anything_is_read(tiny_t5: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Small:
        available = 1000

    monkeypatch.setattr("assistant.llm.summariser.psutil.virtual_memory", Small)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ModelError, match=r"tiny-t5 needs 0\.0 GiB in full precision"):
        Summariser(tiny_t5)


def test_a_whole_turn_answers_from_the_summaries(parts: Parts, tiny_t5: Path) -> None:
    llm = ScriptedLLM(["Lentils hold iron."])
    chosen = replace(
        knobs(parts, digest="seq2seq", summariser=str(tiny_t5)), llm=llm, retriever=FixedRetriever([LENTILS, MILK])
    )
    asked = Turn("What holds iron?", choices=Choices(strategy="concat", loop="retrieve_then_generate", k=2))
    *_, turn = flow.run(asked, chosen, Event())
    assert turn.status == "done"
    assert "Milk holds calcium." in llm.prompts[-1][-1].content
    assert turn.citations[0].quote == "Lentils hold iron and protein."


def test_it_is_loaded_before_the_first_turn(
    parts: Parts, tiny_t5: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[Path] = []

    def counted(folder: Path, name: str) -> Summariser:
        loads.append(folder)
        return Summariser(folder, name)

    monkeypatch.setattr(summariser, "Summariser", counted)
    monkeypatch.setattr("assistant.parts.load_embedder", lambda *_: WORDS)
    monkeypatch.setattr("assistant.library.starter.ensure_starter", lambda *_: Path())
    monkeypatch.setattr("assistant.llm.load.load_or_fall_back", lambda *_: ScriptedLLM())
    model = copied(tiny_t5, tmp_path)  # which no other test has loaded
    for name in (str(model), "/no/such/model"):
        loader = Loader(knobs(parts, digest="seq2seq", summariser=name).settings)
        loader.start()
        loader.wait()
        assert "Summariser" in [stage.name for stage in loader.stages() if stage.done]
        assert loads == [model]
    summariser.load(knobs(parts, digest="seq2seq", summariser=str(model)).settings)
    assert loads == [model]
