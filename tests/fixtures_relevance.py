"""A cross-encoder, an MPNet and a T5 with random weights, small enough to be made and trained in a test."""

from __future__ import annotations

from pathlib import Path

import pytest

WORDS = """[PAD] [UNK] [CLS] [SEP] [MASK] what holds protein is rich in lentils milk walks good the capital of france
peru norway kenya paris lima oslo nairobi where : . , ? word""".split()


@pytest.fixture(scope="session")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers, a vocabulary of a few words, and one logit."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny-cross-encoder"
    folder.mkdir()
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        num_labels=1,
        initializer_range=0.1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab={word: n for n, word in enumerate(WORDS)}, model_max_length=64).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_mpnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an MPNet of three layers without a head, as Sentence-BERT models are; it knows a few words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import MPNetConfig, MPNetModel, PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", *WORDS[5:]]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    folder = tmp_path_factory.mktemp("models") / "tiny-mpnet"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", model_max_length=64
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=66,
        initializer_range=0.3,
        pad_token_id=1,
    )
    MPNetModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a T5 of one layer, whose tokenizer knows a few words, "true" and "false" among them."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    words = ["<pad>", "</s>", "<unk>", "true", "false", "question", "context", *WORDS[5:]]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    folder = tmp_path_factory.mktemp("models") / "tiny-t5"
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=len(words),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=1,
        num_heads=2,
        dropout_rate=0.0,
        decoder_start_token_id=0,
    )
    T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder
