"""The supported families of encoders, as values of one table.

Each is BERT with its differences or, in the second half, Llama with its own. ``family`` documents the fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from isogloss.core.errors import ConfigError, ModelError, check_named, did_you_mean
from isogloss.core.run_parts import Architecture
from isogloss.encoders import FAMILIES
from isogloss.encoders.family import Ability, Config, EncoderFamily, Model, Site

if TYPE_CHECKING:
    from torch import Tensor, nn

BERT = EncoderFamily(
    name="bert",
    first_position=0,
    lacks={},
    layers="encoder.layer",
    layer=Site(
        attention=("attention",),
        query="attention.self.query",
        key="attention.self.key",
        value="attention.self.value",
        attention_output="attention.output.dense",
        attention_norm="attention.output.LayerNorm",
        attention_dropout="attention.self.dropout",
        output_dropout="attention.output.dropout",
        feed_forward=("intermediate", "output"),
        feed_forward_in="intermediate.dense",
        feed_forward_out="output.dense",
        feed_forward_norm="output.LayerNorm",
    ),
    architecture={
        "dim": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "feed_forward": "intermediate_size",
        "positions": "max_position_embeddings",
    },
    extra_config=lambda _: {"type_vocab_size": 2},
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    tokenizer="BertTokenizer",
    masked_lm_scores=lambda model, states: model.cls(states),
    tag_scores=lambda model, states: model.classifier(model.dropout(states)),
)
"""BERT (Devlin et al. 2019) and multilingual BERT.

Two segments, positions from 0; post-norm layers as in the original Transformer, where each sub-layer ends in
dropout, residual and norm (Vaswani et al. 2017, Section 3.1).
"""

XLM_ROBERTA = replace(
    BERT,
    name="xlm-roberta",
    first_position=2,
    extra_config=lambda _: {"type_vocab_size": 1},
    tokenizer="XLMRobertaTokenizer",
    masked_lm_scores=lambda model, states: model.lm_head(states),
    renamed_choices={  # Both heads have the same layers: dense, tanh, one score.
        r"^roberta\.pooler\.dense\.": "classifier.dense.",
        r"^classifier\.weight$": "classifier.out_proj.weight",
        r"^classifier\.bias$": "classifier.out_proj.bias",
    },
)
"""XLM-R (Conneau et al. 2020): RoBERTa in 100 languages.

BERT's layers, one segment. Padding has position 1, its id; texts start at position 2.
"""

CAMEMBERT = replace(XLM_ROBERTA, name="camembert")
"""CamemBERT (Martin et al. 2020): RoBERTa for French."""

ROBERTA = replace(XLM_ROBERTA, name="roberta", tokenizer="RobertaTokenizer")
"""RoBERTa (Liu et al. 2019): byte-level subwords."""

DISTILBERT = replace(
    BERT,
    name="distilbert",
    layers="transformer.layer",
    layer=Site(
        attention=("attention", "sa_layer_norm"),
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_output="attention.out_lin",
        attention_norm="sa_layer_norm",
        attention_dropout="attention.dropout",
        feed_forward=("ffn", "output_layer_norm"),
        feed_forward_in="ffn.lin1",
        feed_forward_out="ffn.lin2",
        feed_forward_norm="output_layer_norm",
    ),
    architecture={
        "dim": "dim",
        "layers": "n_layers",
        "heads": "n_heads",
        "feed_forward": "hidden_dim",
        "positions": "max_position_embeddings",
    },
    extra_config=lambda _: {},
    dropouts=("dropout", "attention_dropout", "seq_classif_dropout", "qa_dropout"),
    tokenizer="DistilBertTokenizer",
    masked_lm_scores=lambda model, states: model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    ),
)
"""DistilBERT (Sanh et al. 2019): BERT's layers, half as many, without segments."""


def _mdeberta_v3(architecture: Architecture) -> dict[str, object]:
    """Configure attention as in mDeBERTa-v3: relative positions only, no segments."""
    return {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
        "position_buckets": max(1, architecture.positions // 2),  # 256 buckets for 512 positions.
    }


def _deberta_masked_lm(model: Model, states: Tensor) -> Tensor:
    """Apply one of the two heads of DebertaV2ForMaskedLM, as ``legacy`` in config.json selects."""
    if model.config.legacy:
        return cast("Tensor", model.cls(states))
    return cast("Tensor", model.lm_predictions(states, model.deberta.embeddings.word_embeddings))


DEBERTA = replace(
    BERT,
    name="deberta-v2",
    lacks={
        "projections": "also projects distances with the matrices of queries and keys",
        "new-positions": "uses distances between subwords instead of positions",
        "attention-kinds": "computes attention in its own way",
    },
    layer=replace(BERT.layer, query=None, key=None, value=None, attention_dropout="", output_dropout=""),
    extra_config=_mdeberta_v3,
    tokenizer="DebertaV2Tokenizer",
    masked_lm_scores=_deberta_masked_lm,
)
"""DeBERTa-v2 and v3 (He et al. 2021, 2023), including mDeBERTa-v3: attention with relative distances.

BERT's layers with disentangled attention; v2 and v3 share the ``model_type``. The convolution after the first
layer (v2-xlarge) belongs to no site. Layers and attention return tuples.
"""


def _even_heads(architecture: Architecture) -> dict[str, object]:
    width = architecture.dim // architecture.heads
    if width % 2:
        raise ConfigError(
            f"architecture: {architecture.heads} heads on a width (dim) of {architecture.dim} are {width} "
            f"wide, but {architecture.family} rotates pairs of numbers. Use heads with a width of 64, that "
            f"is heads = dim / 64."
        )
    return {}


MODERNBERT = replace(
    BERT,
    name="modernbert",
    lacks={
        "post-norm": "normalises before attention and feed-forward",
        "projections": "computes queries, keys and values with one matrix",
    },
    layers="layers",
    layer=Site(
        attention=("attn_norm", "attn"),
        query=None,
        key=None,
        value=None,
        attention_output="attn.Wo",
        attention_norm="attn_norm",
        feed_forward=("mlp_norm", "mlp"),
        feed_forward_in="mlp.Wi",
        feed_forward_out="mlp.Wo",
        feed_forward_norm="mlp_norm",
    ),
    extra_config=_even_heads,
    is_rotary=True,
    dropouts=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"),
    tokenizer="PreTrainedTokenizerFast",
    masked_lm_scores=lambda model, states: model.decoder(model.head(states)),
    tag_scores=lambda model, states: model.classifier(model.drop(model.head(states))),
)
"""ModernBERT (Warner et al. 2024) and mmBERT: pre-norm, rotated positions, gated feed-forward.

No segments, and a final norm after the last layer. The first attention norm is the identity, because
embeddings are already normalised. Two of three layers have local attention (``local_attention``).
"""

XLM_ROBERTA_XL = replace(
    XLM_ROBERTA,
    name="xlm-roberta-xl",
    lacks={"post-norm": "normalises before attention and feed-forward"},
    layer=replace(
        BERT.layer,
        attention_norm="attention.self_attn_layer_norm",
        feed_forward=("LayerNorm", "intermediate", "output"),
        feed_forward_norm="LayerNorm",
        output_dropout="attention.output.dropout",
    ),
)
"""XLM-R XL and XXL (Goyal et al. 2021): pre-norm XLM-R.

The attention sub-layer is one module, which includes its norm and residual.
"""

REMBERT = replace(
    BERT,
    name="rembert",
    lacks={"attention-kinds": "computes attention in its own way"},
    extra_config=lambda shape: {
        "type_vocab_size": 2,
        "input_embedding_size": max(1, shape.dim // 4),  # 256 for 1,152 in the paper.
        "output_embedding_size": shape.dim,
    },
    dropouts=(*BERT.dropouts, "classifier_dropout_prob"),
    tokenizer="DebertaV2Tokenizer",
)
"""RemBERT (Chung et al. 2021): BERT with narrow embeddings before and wide ones after its layers."""

XMOD = replace(
    XLM_ROBERTA,
    name="xmod",
    lacks={
        "post-norm": "normalises its feed-forward twice, or first (pre_norm)",
        "new-encoders": "has adapters for its own languages (use xlm-roberta and modules instead)",
    },
    layer=replace(BERT.layer, own_adapters="output.adapter_modules"),
    languages=lambda config: tuple(str(name).partition("_")[0] for name in config.languages),
)
"""X-MOD (Pfeiffer et al. 2022): XLM-R with an adapter for each language of its pretraining.

A language's adapters are in the feed-forward's output. If they reuse its norm, the norm runs twice.
"""


def _own_head_or(name: str) -> Callable[[Model, Tensor], Tensor]:
    """Return a function that applies our own head, or else the linear layer of a transformers class."""

    def tag_scores(model: Model, states: Tensor) -> Tensor:
        if hasattr(model, "head"):
            return cast("Tensor", model.head(states))
        return cast("Tensor", getattr(model, name)(model.dropout(states)))

    return tag_scores


OWN_HEADS = (
    "AutoModelForQuestionAnswering",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
)

EUROBERT = replace(
    MODERNBERT,
    name="eurobert",
    lacks={"post-norm": MODERNBERT.lacks["post-norm"]},
    layer=Site(
        attention=("input_layernorm", "self_attn"),
        query="self_attn.q_proj",
        key="self_attn.k_proj",
        value="self_attn.v_proj",
        attention_output="self_attn.o_proj",
        attention_norm="input_layernorm",
        feed_forward=("post_attention_layernorm", "mlp"),
        feed_forward_in="mlp.gate_proj",
        feed_forward_out="mlp.down_proj",
        feed_forward_norm="post_attention_layernorm",
    ),
    dropouts=("attention_dropout",),
    masked_lm_scores=lambda model, states: model.lm_head(states),
    tag_scores=lambda model, states: model.classifier(states),
    own_heads=("AutoModelForQuestionAnswering",),
    word_embeddings="embed_tokens",
)
"""EuroBERT (Boizard et al. 2025): Llama's layers without its mask.

A gated feed-forward, and a final norm after the last layer.
"""

LLAMA = replace(
    EUROBERT,
    name="llama",
    lacks={**EUROBERT.lacks, "new-encoders": "is a decoder, which learns by predicting the next subword"},
    tag_scores=_own_head_or("score"),
    lifted_where=("is_causal", False),
    renamed_weights={r"^transformer\.": "model."},
    own_heads=OWN_HEADS,
    loaded_with={"use_cache": False},
)
"""Llama 2 and 3 (Touvron et al. 2023) and models with the same layers: a decoder.

Keys of earlier subwords are not cached: each text is read once, and language modules would mix them up.
transformers calls the encoder of a question-answering model ``transformer``.
"""

QWEN3 = replace(LLAMA, name="qwen3")
"""Qwen 3 (Yang et al. 2025): a decoder like Llama."""

GEMMA3 = replace(
    LLAMA,
    name="gemma3_text",
    lacks={**LLAMA.lacks, "post-norm": "normalises before and after each sub-layer, within the residual"},
    layer=replace(
        LLAMA.layer,
        attention=("input_layernorm", "self_attn", "post_attention_layernorm"),
        feed_forward=("pre_feedforward_layernorm", "mlp", "post_feedforward_layernorm"),
        feed_forward_norm="pre_feedforward_layernorm",
    ),
    lifted_where=("use_bidirectional_attention", True),
)
"""Gemma 3 (Kamath et al. 2025), text only: a decoder with norms around attention and feed-forward.

Five of six layers attend to a window of neighbours. With the mask lifted, half of it is on either side.
"""

M2M_100 = replace(
    BERT,
    name="m2m_100",
    lacks={
        "post-norm": MODERNBERT.lacks["post-norm"],
        "new-positions": "counts positions itself",
        "new-encoders": "is the half of a translation model",
    },
    layers="layers",
    layer=Site(
        attention=("self_attn_layer_norm", "self_attn"),
        query="self_attn.q_proj",
        key="self_attn.k_proj",
        value="self_attn.v_proj",
        attention_output="self_attn.out_proj",
        attention_norm="self_attn_layer_norm",
        feed_forward=("final_layer_norm", "fc1", "fc2"),
        feed_forward_in="fc1",
        feed_forward_out="fc2",
        feed_forward_norm="final_layer_norm",
    ),
    architecture={**BERT.architecture, "feed_forward": "encoder_ffn_dim"},
    dropouts=("dropout", "attention_dropout"),
    tag_scores=LLAMA.tag_scores,
    encoder_class="models.m2m_100.modeling_m2m_100.M2M100Encoder",
    renamed_weights={r"^(model\.)?encoder\.": "", r"^(model\.)?shared\.": "embed_tokens."},
    own_heads=OWN_HEADS,
    word_embeddings="embed_tokens",
    loaded_with={"encoder_layerdrop": 0.0},
)
"""The encoder of M2M-100 and NLLB (Fan et al. 2021; NLLB Team 2022): fixed positions, pre-norm.

All layers run during training. Layers are not dropped at random as in pretraining.
"""

MT5 = replace(
    M2M_100,
    name="mt5",
    lacks={
        **M2M_100.lacks,
        "new-positions": "uses distances between subwords instead of positions",
        "attention-kinds": "adds distances to attention in its own way",
    },
    layers="encoder.block",
    layer=Site(
        attention=("layer.0",),
        query="layer.0.SelfAttention.q",
        key="layer.0.SelfAttention.k",
        value="layer.0.SelfAttention.v",
        attention_output="layer.0.SelfAttention.o",
        attention_norm="layer.0.layer_norm",
        feed_forward=("layer.1",),
        feed_forward_in="layer.1.DenseReluDense.wi_0",
        feed_forward_out="layer.1.DenseReluDense.wo",
        feed_forward_norm="layer.1.layer_norm",
    ),
    architecture={**BERT.architecture, "feed_forward": "d_ff"},
    dropouts=("dropout_rate",),
    encoder_class="MT5EncoderModel",
    renamed_weights={},
    tag_scores=_own_head_or("classifier"),
    decoder_heads=("AutoModelForQuestionAnswering", "AutoModelForSequenceClassification"),
    word_embeddings="encoder.embed_tokens",
    longest=1024,
    loaded_with={},
)
"""The encoder of mT5 (Xue et al. 2021): relative positions, pre-norm, gated feed-forward.

The first layer's attention contains the weights of distances for all layers.
"""


def family_of(model: Model) -> EncoderFamily:
    """Return the family of an encoder or of a model with a head.

    Raises ModelError for unsupported ones.
    """
    return family_named(model.config.model_type, type(model).__name__)


def longest_text(model: Model) -> int:
    """Return the maximum length of texts for an encoder of any family, in subwords including special ones."""
    from torch import nn

    config = model.config
    if config.model_type in FAMILIES:
        return FAMILIES[config.model_type].longest_text(config)
    longest = getattr(config, "max_position_embeddings", None)
    if longest is None or longest < 1:  # Positions are relative.
        return sys.maxsize
    tables = [
        module
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding)
    ]
    unused_rows = [table.padding_idx + 1 for table in tables if table.padding_idx is not None]
    return int(longest) - max(unused_rows, default=0)


def family_named(model_type: str, where: str) -> EncoderFamily:
    """Return the family of a ``model_type``.

    Raises ModelError, naming ``where``, for unsupported ones.
    """
    if model_type not in FAMILIES:
        raise ModelError(
            f"{where}: the architecture {model_type!r} is not supported."
            f"{did_you_mean(model_type, FAMILIES)} Supported: {', '.join(sorted(FAMILIES))}."
        )
    return FAMILIES[model_type]


def has_known_layers(model: nn.Module) -> bool:
    """Return whether a model's layers are where its family has them.

    They are not in whole translation models.
    """
    family = str(getattr(getattr(model, "config", None), "model_type", ""))
    if family not in FAMILIES:
        return False
    sites = FAMILIES[family].sites(cast(Model, model))
    try:
        model.get_submodule(sites[-1].block)
    except AttributeError:
        return False
    return True


def languages_of(model: Model) -> tuple[str, ...]:
    """Return the languages with separate modules in an encoder of any family."""
    config = model.config
    return FAMILIES[config.model_type].languages(config) if config.model_type in FAMILIES else ()


def is_causal(config: Config) -> bool:
    """Return whether an encoder is a decoder with a causal mask.

    With it, subwords do not attend to later ones.
    """
    lifted_where = FAMILIES[config.model_type].lifted_where
    if lifted_where is None:
        return False
    field, value = lifted_where
    return getattr(config, field, None) is not value


def has_masked_lm_head(config: Config) -> bool:
    """Return whether a configuration belongs to an encoder saved with a masked-LM head."""
    return any(kind.endswith(("ForMaskedLM", "ForPreTraining")) for kind in config.architectures or ())


def has_text_head(config: Config) -> bool:
    """Return whether an encoder was saved with its pretraining head.

    A decoder's head may be its embeddings.
    """
    decoder = FAMILIES[config.model_type].is_decoder
    causal_head = any(kind.endswith("ForCausalLM") for kind in config.architectures or ())
    return has_masked_lm_head(config) or (decoder and (causal_head or bool(config.tie_word_embeddings)))


def check_new(name: str, where: str) -> None:
    """Raise ConfigError for an unknown family, ModelError for one without new encoders."""
    check_named(where, "encoder family", FAMILIES, name)
    what = f"{where}: a new encoder learns by masked language modelling"
    require(FAMILIES[name], "new-encoders", what=what)


def require(family: EncoderFamily, *abilities: Ability, what: str) -> None:
    """Raise ModelError, with the reason and alternatives, unless a family has these abilities.

    ``what`` explains the requirement, as in "X-Mixup mixes after a post-norm self-attention". With
    ``family_named``, plans can be checked before anything is loaded.
    """
    for ability in abilities:
        if ability in family.lacks:
            alternatives = [
                name for name in FAMILIES.places if not FAMILIES[name].lacks.keys() & set(abilities)
            ]
            raise ModelError(
                f"{what}; {family.name} {family.lacks[ability]}. Use {' or '.join(alternatives)}."
            )
