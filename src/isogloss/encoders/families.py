"""The supported families of encoders, as values of one table.

The question "where is the feed-forward of layer i?" is answered here once, for mixup, adapters, language
modules, freezing, pruning and similarity alike. Each family is BERT with its differences.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.core.run_parts import Architecture

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

ModuleName = Literal[
    "block", "query", "key", "value", "attention_output", "attention_norm", "feed_forward_in",
    "feed_forward_out", "feed_forward_norm",
]  # fmt: skip
"""A module of a layer."""

SubLayer = Literal["block", "attention", "feed_forward"]
"""A sub-layer, or the whole layer; attention and feed_forward together make up the block."""

Ability = Literal["post-norm", "projections", "new-positions", "attention-kinds"]
"""A property that a method may require and some families lack.

post-norm: attention and feed-forward end in a norm, after the residual (else they begin with one).
projections: queries, keys and values each have a module, named by the site.
new-positions: position ids can be given, and hence be reset within a row.
attention-kinds: the attention implementation can be chosen (else it is eager).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One layer of an encoder: the dotted names of its modules in the model.

    Except for dropouts, each of these modules runs exactly once per forward pass, and returns a tensor or a
    tuple that starts with one.
    """

    layer: int = 0
    """From 1, as in the papers."""

    block: str = ""
    """The whole layer."""

    attention: tuple[str, ...]
    """The modules of the attention sub-layer with its norm, in order."""

    query: str | None
    key: str | None
    value: str | None
    """The projections; None in families without the ability "projections"."""

    attention_output: str
    """The projection of all heads to the hidden size; adapters after attention follow it."""

    attention_norm: str
    """The norm after attention and its residual; in families without post-norm, the norm before attention."""

    attention_dropout: str = ""
    """The dropout of attention weights (fused attention reads its rate only); empty without "projections"."""

    output_dropout: str = ""
    """The dropout between the attention's output and the residual; empty where there is none."""

    feed_forward: tuple[str, ...]
    """The modules of the feed-forward sub-layer with its norm, in order."""

    feed_forward_in: str
    """The projection to the intermediate size, or to twice that in gated feed-forwards."""

    feed_forward_out: str
    """The projection to the hidden size; adapters after the feed-forward follow it."""

    feed_forward_norm: str
    """The norm after feed-forward and residual; in families without post-norm, the norm before the former."""

    def module(self, model: nn.Module, name: ModuleName) -> nn.Module:
        """Return a module of this layer in the site's model, or in a copy of that.

        ModelError for a projection without a module of its own.
        """
        path: str | None = getattr(self, name)
        if path is None:
            raise ModelError(f"layer {self.layer}: the {name} projection is no module of its own here.")
        return model.get_submodule(path)

    def parameters(self, model: nn.Module, sub_layer: SubLayer) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield name and value of each parameter in a sub-layer."""
        names = {"block": (self.block,), "attention": self.attention, "feed_forward": self.feed_forward}
        for name in names[sub_layer]:
            yield from model.get_submodule(name).named_parameters(prefix=name)

    def renamed(self, rename: Callable[[str], str]) -> "Site":
        """Return the site with all module names inside the layer mapped by a function."""
        changed: dict[str, Any] = {}
        for name in (one.name for one in fields(self)[2:]):
            value = getattr(self, name)
            changed[name] = tuple(map(rename, value)) if isinstance(value, tuple) else value and rename(value)
        return replace(self, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFamily:
    """A family of Hugging Face encoders. All methods take an encoder or a model with a head."""

    name: str
    """The family's ``model_type`` in config.json."""

    about: str
    """One-line description."""

    first_position: int
    """Position id of the first subword of a text."""

    lacks: Mapping[Ability, str]
    """The abilities it lacks, with what it does instead; see ``require``."""

    layers: str
    """Name of the list of layers in the encoder."""

    layer: Site
    """Names of the modules in each layer, relative to it."""

    architecture: Mapping[str, str]
    """Field of config.json for each field of ``Architecture``."""

    extra_config: Callable[[Architecture], Mapping[str, object]]
    """Further fields of config.json; ConfigError for architectures that the family does not allow."""

    dropouts: tuple[str, ...]
    """The dropout rates in config.json."""

    tokenizer: str
    """Class in transformers of a new encoder's tokenizer."""

    masked_lm_scores: Callable[["PreTrainedModel", Tensor], Tensor]
    """Apply a masked-LM model's head to last-layer states [… dim]; returns [… vocabulary]."""

    tag_scores: Callable[["PreTrainedModel", Tensor], Tensor]
    """Apply a token classifier's head to last-layer states [… dim]; returns [… label]."""

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """Return the layers from first to last."""
        prefix = f"{encoder_prefix(encoder)}{self.layers}."
        blocks = [f"{prefix}{number}" for number in range(encoder.config.num_hidden_layers)]
        return [
            replace(self.layer.renamed(f"{block}.".__add__), layer=layer, block=block)
            for layer, block in enumerate(blocks, start=1)
        ]

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output is the first layer's input."""
        embeddings: nn.Module = encoder.get_submodule(f"{encoder_prefix(encoder)}embeddings")
        return embeddings

    def longest_text(self, config: "PreTrainedConfig") -> int:
        """Return the longest text seen in pretraining, in subwords including special ones.

        Longer texts fail with absolute positions, and lose accuracy with relative ones.
        """
        return int(config.max_position_embeddings) - self.first_position

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, object]:
        """Return an architecture as fields of config.json; ConfigError if the family does not allow it.

        ``padding`` is the id of the padding subword. Vocabulary, special subwords and dropout are set
        elsewhere.
        """
        shape = {field: getattr(architecture, name) for name, field in self.architecture.items()}
        if self.first_position:  # The position table also has rows for ids up to that of padding.
            shape[self.architecture["positions"]] += padding + 1
        return {**shape, **self.extra_config(architecture)}


def encoder_prefix(model: "PreTrainedModel") -> str:
    """Return the prefix of the encoder's module names: "bert." in a model, "" in an encoder."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."


BERT = EncoderFamily(
    name="bert",
    about="BERT (Devlin et al. 2019), and with it multilingual BERT.",
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
"""Two segments, positions from 0; post-norm layers as in the original Transformer, where each sub-layer ends
in dropout, residual and norm (Vaswani et al. 2017, Section 3.1)."""

XLM_ROBERTA = replace(
    BERT,
    name="xlm-roberta",
    about="RoBERTa (Liu et al. 2019) and those built like it: XLM-R (Conneau et al. 2020), CamemBERT.",
    first_position=2,
    extra_config=lambda _: {"type_vocab_size": 1},
    tokenizer="XLMRobertaTokenizer",
    masked_lm_scores=lambda model, states: model.lm_head(states),
)
"""BERT's layers, one segment. Padding has position 1, its id; texts start at position 2."""

CAMEMBERT = replace(XLM_ROBERTA, name="camembert")
ROBERTA = replace(XLM_ROBERTA, name="roberta", tokenizer="RobertaTokenizer")
"""Byte-level subwords."""

DISTILBERT = replace(
    BERT,
    name="distilbert",
    about="DistilBERT (Sanh et al. 2019): BERT's layers, half as many, without segments.",
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
    dropouts=("dropout", "attention_dropout"),
    tokenizer="DistilBertTokenizer",
    masked_lm_scores=lambda model, states: model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    ),
)


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


def _deberta_masked_lm(model: "PreTrainedModel", states: Tensor) -> Tensor:
    """Apply one of the two heads of DebertaV2ForMaskedLM, as ``legacy`` in config.json selects."""
    if model.config.legacy:
        return cast(Tensor, model.cls(states))
    return cast(Tensor, model.lm_predictions(states, model.deberta.embeddings.word_embeddings))


DEBERTA = replace(
    BERT,
    name="deberta-v2",
    about="DeBERTa-v2 and v3 (He et al. 2021, 2023), and with them mDeBERTa-v3: attention that weighs "
    "distances.",
    lacks={
        "projections": "projects distances with the matrices of queries and keys as well",
        "new-positions": "sees how far apart subwords stand, and no positions",
        "attention-kinds": "computes attention in its own way",
    },
    layer=replace(BERT.layer, query=None, key=None, value=None, attention_dropout="", output_dropout=""),
    extra_config=_mdeberta_v3,
    tokenizer="DebertaV2Tokenizer",
    masked_lm_scores=_deberta_masked_lm,
)
"""BERT's layers with disentangled attention; v2 and v3 share the ``model_type``.

The convolution after the first layer (v2-xlarge) belongs to no site. Layers and attention return tuples.
"""


def _even_heads(architecture: Architecture) -> dict[str, object]:
    """Raise ConfigError for heads of odd width."""
    width = architecture.dim // architecture.heads
    if width % 2:
        raise ConfigError(
            f"architecture: {architecture.heads} heads on a width (dim) of {architecture.dim} are {width} "
            f"wide, and modernbert rotates pairs of numbers. Take heads of 64, that is heads = dim / 64."
        )
    return {}


MODERNBERT = replace(
    BERT,
    name="modernbert",
    about="ModernBERT (Warner et al. 2024), and with it mmBERT: norms first, rotated positions, gated "
    "feed-forward.",
    lacks={
        "post-norm": "normalises before attention and feed-forward",
        "projections": "makes queries, keys and values with one matrix",
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
    dropouts=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"),
    tokenizer="PreTrainedTokenizerFast",
    masked_lm_scores=lambda model, states: model.decoder(model.head(states)),
    tag_scores=lambda model, states: model.classifier(model.drop(model.head(states))),
)
"""No segments, a final norm after the last layer. The first attention norm is the identity, since embeddings
are normed already. Two of three layers have local attention (``local_attention``)."""

_ALL = (BERT, CAMEMBERT, DEBERTA, DISTILBERT, MODERNBERT, ROBERTA, XLM_ROBERTA)
FAMILIES = {family.name: family for family in _ALL}


def family_of(model: "PreTrainedModel") -> EncoderFamily:
    """Return the family of an encoder or of a model with a head; ModelError for unsupported ones."""
    return family_named(model.config.model_type, type(model).__name__)


def family_named(model_type: str, where: str) -> EncoderFamily:
    """Return the family of a ``model_type``; ModelError, naming ``where``, for unsupported ones."""
    if model_type not in FAMILIES:
        raise ModelError(
            f"{where}: the architecture {model_type!r} is not supported."
            f"{did_you_mean(model_type, FAMILIES)} Supported: {', '.join(sorted(FAMILIES))}."
        )
    return FAMILIES[model_type]


def require(family: EncoderFamily, *abilities: Ability, what: str) -> None:
    """Raise ModelError, with the reason and alternatives, unless a family has these abilities.

    ``what`` explains the requirement, as in "X-Mixup mixes after a post-norm self-attention". With
    ``family_named``, plans can be checked before anything is loaded.
    """
    for ability in abilities:
        if ability in family.lacks:
            able = [one.name for one in _ALL if not one.lacks.keys() & set(abilities)]
            raise ModelError(f"{what}; {family.name} {family.lacks[ability]}. Use {' or '.join(able)}.")
