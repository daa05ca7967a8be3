"""Tiny translation models with random weights, given the languages in the ways of real ones."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from isogloss.encoders.saving import save_model
from isogloss.features.pretraining.new_tokenizers import train_tokenizer
from isogloss.features.translation.seq2seq_models import MarianShape, new_marian, train_translation_tokenizer

LINES = (
    "the cat sat on the mat",
    "a dog ran over the hills and saw Anna in Rome",
    "yesterday it rained there, slowly",
    "what happened",
    "el gato vio la casa",
    "ayer llovió en Roma",
)
SHAPE = MarianShape(layers=1, decoder_layers=1, dim=16, heads=2, feed_forward=32, positions=36)


def marian(folder: Path, languages: Sequence[str] = ("en", "es"), lines: Iterable[str] = LINES) -> Path:
    tokenizer = train_translation_tokenizer(lines, languages=languages, size=120)
    model = new_marian(SHAPE, tokenizer, seed=3, attention="sdpa")
    # Weights this large make up their mind: no tie is left to the last bit.
    stretch(model)
    save_model(model.eval(), tokenizer, folder)
    return folder


def m2m(folder: Path, codes: Sequence[str]) -> Path:
    """M2M-100 or NLLB, by the codes its vocabulary has."""
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    tokenizer = with_codes(codes)
    config = M2M100Config(
        vocab_size=len(tokenizer),
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=36,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        decoder_start_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(4)
    model = M2M100ForConditionalGeneration(config)
    stretch(model)
    save_model(model.eval(), tokenizer, folder)
    return folder


def slow_marian(folder: Path) -> Path:
    """OPUS-MT's kind: two sentencepiece models and one vocabulary, its language before every text."""
    import sentencepiece
    from transformers import MarianTokenizer

    folder.mkdir()
    (folder / "lines.txt").write_text("\n".join(LINES * 5), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"), model_prefix=str(folder / "source"), vocab_size=50, minloglevel=2
    )
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.model"))
    pieces = [model.id_to_piece(index) for index in range(model.get_piece_size())]
    names = ["</s>", "<unk>", ">>es<<", *(piece for piece in pieces if piece[-1] != ">"), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: index for index, name in enumerate(names)}))
    spm = folder / "source.model"
    tokenizer = MarianTokenizer(str(spm), str(spm), str(folder / "vocab.json"))
    result = new_marian(SHAPE, tokenizer, seed=1, attention="sdpa")
    stretch(result)
    save_model(result.eval(), tokenizer, folder / "model")
    return folder / "model"


def with_codes(codes: Sequence[str]) -> Any:
    tokenizer = train_tokenizer(LINES, family="xlm-roberta", size=120)  # Both number special subwords alike.
    tokenizer.add_special_tokens({"additional_special_tokens": list(codes)})
    return tokenizer


def stretch(model: Any) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1 and "embed_positions" not in name and "shared" not in name:
                weight.mul_(8)
