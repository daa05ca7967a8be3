"""Tiny models of many families with random weights, as ``AutoModel`` makes them, each with a tokenizer.

Families that isogloss knows and others; tokenizers with and without tokens that pad, open or close a text.
"""

from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoConfig, PreTrainedTokenizerFast

from made_up import SPANS

BERTS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

WIDTHS: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 40,
}
GPTS: dict[str, Any] = {**WIDTHS, "num_key_value_heads": 2, "head_dim": 8}
HALVES: dict[str, Any] = {
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 40,
    "decoder_start_token_id": 3,
}
T5S: dict[str, Any] = {
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 32,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 2,
    "decoder_start_token_id": 0,
}

MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "albert": ("albert", "wordpiece", {**WIDTHS, "embedding_size": 8}),
    "bart": ("bart", "bytes", HALVES),
    "bert": ("bert", "wordpiece", WIDTHS),
    "big_bird": ("big_bird", "unigram", {**WIDTHS, "attention_type": "original_full"}),
    "bloom": ("bloom", "gpt", {"hidden_size": 16, "n_layer": 3, "n_head": 2}),
    "camembert": ("camembert", "unigram", WIDTHS),
    "convbert": ("convbert", "wordpiece", {**WIDTHS, "embedding_size": 16, "head_ratio": 1}),
    "data2vec-text": ("data2vec-text", "bytes", WIDTHS),
    "deberta": ("deberta", "bytes", WIDTHS),
    "deberta-v2": (
        "deberta-v2",
        "unigram",
        {
            **WIDTHS,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "type_vocab_size": 0,
            "position_buckets": 16,
        },
    ),
    "distilbert": (
        "distilbert",
        "wordpiece",
        {"dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 40},
    ),
    "electra": ("electra", "wordpiece", {**WIDTHS, "embedding_size": 8}),
    "ernie": ("ernie", "wordpiece", WIDTHS),
    "esm": ("esm", "wordpiece", {**WIDTHS, "position_embedding_type": "rotary", "mask_token_id": 4}),
    "eurobert": ("eurobert", "bytes", GPTS),
    "falcon": ("falcon", "gpt", {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}),
    "fnet": ("fnet", "unigram", WIDTHS),
    "gemma": ("gemma", "opened", GPTS),
    "gemma3_text": ("gemma3_text", "opened", {**GPTS, "bos_token_id": 2, "eos_token_id": 3}),
    "gpt2": ("gpt2", "gpt", {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 40}),
    "gpt_neox": ("gpt_neox", "gpt", WIDTHS),
    "ibert": ("ibert", "bytes", WIDTHS),
    "layoutlm": ("layoutlm", "wordpiece", WIDTHS),
    "llama": ("llama", "gpt", GPTS),
    "longformer": ("longformer", "bytes", {**WIDTHS, "attention_window": 8}),
    "luke": ("luke", "bytes", {**WIDTHS, "entity_vocab_size": 5, "entity_emb_size": 8}),
    "m2m_100": ("m2m_100", "unigram", HALVES),
    "marian": ("marian", "closed", HALVES),
    "mbart": ("mbart", "unigram", HALVES),
    "mistral": ("mistral", "gpt", GPTS),
    "modernbert": (
        "modernbert",
        "bytes",
        {**WIDTHS, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    ),
    "mpnet": ("mpnet", "wordpiece", WIDTHS),
    "mt5": ("mt5", "closed", T5S),
    "nllb": ("m2m_100", "language first", HALVES),
    "olmo2": ("olmo2", "gpt", GPTS),
    "opt": ("opt", "opened", {**WIDTHS, "ffn_dim": 32, "word_embed_proj_dim": 16}),
    "pegasus": ("pegasus", "closed", HALVES),
    "phi": ("phi", "gpt", WIDTHS),
    "qwen2": ("qwen2", "gpt", GPTS),
    "qwen3": ("qwen3", "gpt", GPTS),
    "rembert": ("rembert", "unigram", {**WIDTHS, "input_embedding_size": 8, "output_embedding_size": 16}),
    "roberta": ("roberta", "bytes", WIDTHS),
    "roformer": ("roformer", "wordpiece", {**WIDTHS, "embedding_size": 16}),
    "squeezebert": (
        "squeezebert",
        "wordpiece",
        {**WIDTHS, "embedding_size": 16, **{f"{part}_groups": 2 for part in ("q", "k", "v")}},
    ),
    "t5": ("t5", "closed", T5S),
    "umt5": ("umt5", "closed", T5S),
    "xglm": (
        "xglm",
        "opened",
        {
            "d_model": 16,
            "num_layers": 3,
            "attention_heads": 2,
            "ffn_dim": 32,
            "max_position_embeddings": 40,
        },
    ),
    "xlm-roberta": ("xlm-roberta", "unigram", WIDTHS),
    "xlm-roberta-xl": ("xlm-roberta-xl", "unigram", WIDTHS),
    "xlnet": ("xlnet", "unigram", {"d_model": 16, "n_layer": 3, "n_head": 2, "d_inner": 32}),
}
"""By name: the ``model_type``, a kind of tokenizer, and the fields of config.json."""


@cache
def make_tokenizer(kind: str) -> Any:
    """Train a tokenizer of a kind. "gpt" has no token that pads, opens or closes a text."""
    special = (
        ["<|endoftext|>"] if kind == "gpt" else [*BERTS, *(["eng_Latn"] if kind == "language first" else [])]
    )
    if kind == "wordpiece":
        trained_tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        trained_tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        trained_tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer: Any = trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    elif kind in ("bytes", "gpt"):
        trained_tokenizer = Tokenizer(models.BPE())
        trained_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=310,
            special_tokens=special,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
    else:
        trained_tokenizer = Tokenizer(models.Unigram())
        trained_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=90, special_tokens=special, unk_token="[UNK]", show_progress=False
        )
    trained_tokenizer.train_from_iterator(SPANS, trainer)
    if kind == "gpt":
        return PreTrainedTokenizerFast(tokenizer_object=trained_tokenizer, eos_token=special[0])
    single, pair = {
        "opened": ("[CLS] $A", "[CLS] $A [CLS] $B"),
        "closed": ("$A [SEP]", "$A [SEP] $B [SEP]"),
        "language first": ("eng_Latn $A [SEP]", "eng_Latn $A [SEP] $B [SEP]"),
    }.get(kind, ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"))
    numbered_names = [(name, trained_tokenizer.token_to_id(name)) for name in special]
    trained_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=numbered_names
    )
    names = {
        "opened": {"bos_token": "[CLS]", "eos_token": "[SEP]"},
        "closed": {"eos_token": "[SEP]"},
        "language first": {"eos_token": "[SEP]"},
    }.get(kind, {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"})
    return PreTrainedTokenizerFast(
        tokenizer_object=trained_tokenizer, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64, **names
    )


def make_model(name: str, auto: str = "AutoModel", **changes: object) -> tuple[Any, Any]:
    """Return a model in evaluation mode and its tokenizer. Its weights depend on its shape alone."""
    family, kind, fields = MODELS[name]
    tokenizer = make_tokenizer(kind)
    special = {"pad_token_id": tokenizer.pad_token_id}
    config = AutoConfig.for_model(family, vocab_size=len(tokenizer), **{**special, **fields, **changes})
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = getattr(transformers, auto).from_config(config)
        for weight in model.parameters():  # As drawn, small models are nearly linear.
            if weight.ndim > 1:
                weight.normal_(std=0.15)
    return model.eval(), tokenizer
