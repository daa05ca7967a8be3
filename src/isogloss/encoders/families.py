"""The families of encoders isogloss knows: where things are in each, as values of one table.

The question "where is the feed-forward of layer i?" is answered here once, for mixup, adapters, language
switches, freezing, pruning and similarity alike. A family is BERT with what it has otherwise.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.core.run_parts import Architecture

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

Part = Literal[
    "block", "query", "key", "value", "attention_output", "attention_norm", "feed_forward_in",
    "feed_forward_out", "feed_forward_norm",
]  # fmt: skip
"""A single module of a layer."""

Region = Literal["block", "attention", "feed_forward"]
"""A part of a layer's parameters; attention and feed_forward together make up the block."""

Ability = Literal["post-norm", "projections", "new-positions", "attention-kinds"]
"""What a method may need of a family, and not every family has.

post-norm: attention and feed-forward end in their norm, after the residual (else they begin with it).
projections: queries, keys and values have a module each, and a site names it.
new-positions: positions can be given, and so be counted anew within a row.
attention-kinds: how attention is computed can be chosen (else it is explicit).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One layer of an encoder: the dotted names of its modules, seen from the model that was asked.

    Each of these modules, dropouts aside, runs exactly once in a forward pass, and returns a tensor or a
    tuple that begins with one.
    """

    layer: int = 0
    """Counted from 1, as in the papers."""

    block: str = ""
    """The whole layer."""

    attention: tuple[str, ...]
    """The modules that make up the attention sub-layer with its norm, in order."""

    query: str | None
    key: str | None
    value: str | None
    """The projections, in families with the ability of that name; None in the others."""

    attention_output: str
    """The projection of all heads back to the model's width; an adapter after attention follows it."""

    attention_norm: str
    """The norm that closes the attention sub-layer, its input including the residual; in a family without
    post-norm the one that opens it."""

    attention_dropout: str = ""
    """The dropout of the attention's weights (it need not run: fused attention only asks for its rate); no
    name in families without projections."""

    output_dropout: str = ""
    """The dropout between the attention's output and the residual; no name where nothing is dropped there."""

    feed_forward: tuple[str, ...]
    """The modules that make up the feed-forward sub-layer with its norm, in order."""

    feed_forward_in: str
    """The projection to the inner width, or to twice that where one half is a gate."""

    feed_forward_out: str
    """The projection back to the model's width; an adapter after the feed-forward follows it."""

    feed_forward_norm: str
    """The norm that closes the layer, its input including the residual; in a family without post-norm the
    one that opens the feed-forward."""

    def module(self, model: nn.Module, part: Part) -> nn.Module:
        """Return the module of one part in the model the site was made for, or in a copy of it.

        ModelError for a projection that is no module of its own.
        """
        name: str | None = getattr(self, part)
        if name is None:
            raise ModelError(f"layer {self.layer}: the {part} projection is no module of its own here.")
        return model.get_submodule(name)

    def parameters(self, model: nn.Module, region: Region) -> Iterator[tuple[str, nn.Parameter]]:
        """Give name and parameter of everything in a region of this layer."""
        where: str | tuple[str, ...] = getattr(self, region)
        for name in (where,) if isinstance(where, str) else where:
            yield from model.get_submodule(name).named_parameters(prefix=name)

    def renamed(self, rename: Callable[[str], str]) -> "Site":
        """Return the site with other names for the modules inside of the layer."""
        changed: dict[str, Any] = {}
        for field in fields(self):
            names = getattr(self, field.name)
            if names and field.name not in ("layer", "block"):
                changed[field.name] = tuple(map(rename, names)) if isinstance(names, tuple) else rename(names)
        return replace(self, **changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFamily:
    """A Hugging Face family of encoders.

    Every verb takes the encoder alone or a model with a head on it.
    """

    name: str
    """The family's ``model_type`` in config.json."""

    about: str
    """What it is, in a line."""

    first_position: int
    """Position number of the first subword of a text."""

    lacks: Mapping[Ability, str]
    """What the family has not, with what it does instead; ask through ``require``."""

    layers: str
    """Where in the encoder the layers are, under their numbers from 0."""

    layer: Site
    """What is where in each of them, by its name inside of the layer."""

    architecture: Mapping[str, str]
    """The fields of config.json, by those of an architecture."""

    otherwise: Callable[[Architecture], Mapping[str, Any]]
    """What else config.json says of an architecture; ConfigError where the family has no such."""

    dropouts: tuple[str, ...]
    """The fields of config.json that say how much the encoder drops while it trains."""

    tokenizer: str
    """The class of transformers that a new encoder's tokenizer is."""

    masked_lm_scores: Callable[["PreTrainedModel", Tensor], Tensor]
    """Run a masked-LM model's head on last-layer states [… dim]; returns [… vocabulary]."""

    tag_scores: Callable[["PreTrainedModel", Tensor], Tensor]
    """Run a token classifier's head on last-layer states [… dim]; returns [… label]."""

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        prefix = f"{encoder_prefix(encoder)}{self.layers}."
        blocks = [f"{prefix}{number}" for number in range(encoder.config.num_hidden_layers)]
        return [
            replace(self.layer.renamed(f"{block}.".__add__), layer=layer, block=block)
            for layer, block in enumerate(blocks, start=1)
        ]

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        embeddings: nn.Module = encoder.get_submodule(f"{encoder_prefix(encoder)}embeddings")
        return embeddings

    def longest_text(self, config: "PreTrainedConfig") -> int:
        """Return the most subwords, special ones included, of a text as in pretraining.

        Where positions have a table, longer texts fail; elsewhere they work with less accuracy.
        """
        return int(config.max_position_embeddings) - self.first_position

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the family's own fields of config.json; ConfigError when it has no such.

        ``padding`` is the subword texts are padded with. Vocabulary, special subwords and dropout are said
        elsewhere.
        """
        shape = {field: getattr(architecture, name) for name, field in self.architecture.items()}
        if self.first_position:  # Positions up to padding's are counted too.
            shape[self.architecture["positions"]] += padding + 1
        return {**shape, **self.otherwise(architecture)}


def encoder_prefix(model: "PreTrainedModel") -> str:
    """Return what the names of the encoder's modules begin with: "bert." in a model, "" in an encoder."""
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
    otherwise=lambda _: {"type_vocab_size": 2},
    dropouts=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    tokenizer="BertTokenizer",
    masked_lm_scores=lambda model, states: model.cls(states),
    tag_scores=lambda model, states: model.classifier(model.dropout(states)),
)
"""Two segments, positions from 0.

Its layer is the post-norm one of the original Transformer: each sub-layer ends in dropout, residual and norm
(Vaswani et al. 2017, Section 3.1).
"""

XLM_ROBERTA = replace(
    BERT,
    name="xlm-roberta",
    about="RoBERTa (Liu et al. 2019) and those built like it: XLM-R (Conneau et al. 2020), CamemBERT.",
    first_position=2,
    otherwise=lambda _: {"type_vocab_size": 1},
    tokenizer="XLMRobertaTokenizer",
    masked_lm_scores=lambda model, states: model.lm_head(states),
)
"""BERT's layers, one segment.

Positions count from the padding's number (1) on: padding takes position 1, a text begins at 2.
"""

CAMEMBERT = replace(XLM_ROBERTA, name="camembert")
ROBERTA = replace(XLM_ROBERTA, name="roberta", tokenizer="RobertaTokenizer")
"""Its subwords are of bytes."""

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
    otherwise=lambda _: {},
    dropouts=("dropout", "attention_dropout"),
    tokenizer="DistilBertTokenizer",
    masked_lm_scores=lambda model, states: model.vocab_projector(
        model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
    ),
)


def _mdeberta_v3(architecture: Architecture) -> dict[str, Any]:
    """Configure attention as mDeBERTa-v3: by distances alone, no segments."""
    return {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "share_att_key": True,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
        "type_vocab_size": 0,
        "position_buckets": max(1, architecture.positions // 2),  # It tells 256 to either side apart, of 512.
    }


def _deberta_masked_lm(model: "PreTrainedModel", states: Tensor) -> Tensor:
    """Run the one of DebertaV2ForMaskedLM's two heads that ``legacy`` in config.json chooses."""
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
    otherwise=_mdeberta_v3,
    tokenizer="DebertaV2Tokenizer",
    masked_lm_scores=_deberta_masked_lm,
)
"""BERT's layers around its own attention; in config.json all of them are ``deberta-v2``.

Where the first layer is followed by a convolution (v2-xlarge), that is part of no site. A layer and its
attention return tuples.
"""


def _even_heads(architecture: Architecture) -> dict[str, Any]:
    """Refuse heads of odd width."""
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
    otherwise=_even_heads,
    dropouts=("embedding_dropout", "attention_dropout", "mlp_dropout", "classifier_dropout"),
    tokenizer="PreTrainedTokenizerFast",
    masked_lm_scores=lambda model, states: model.decoder(model.head(states)),
    tag_scores=lambda model, states: model.classifier(model.drop(model.head(states))),
)
"""No segments; the last hidden states are normed after the last layer. The first layer's attention norm does
nothing: the embeddings are normed already. Two layers of three look no farther than ``local_attention``.
"""

_ALL = (BERT, CAMEMBERT, DEBERTA, DISTILBERT, MODERNBERT, ROBERTA, XLM_ROBERTA)
FAMILIES = {family.name: family for family in _ALL}


def family_of(model: "PreTrainedModel") -> EncoderFamily:
    """Return the family of an encoder, or of a model with a head; ModelError when it is not known."""
    return family_named(model.config.model_type, type(model).__name__)


def family_named(model_type: str, where: str) -> EncoderFamily:
    """Return the family of a ``model_type``; ModelError, naming ``where``, when it is not known."""
    if model_type not in FAMILIES:
        raise ModelError(
            f"{where}: the architecture {model_type!r} is not supported."
            f"{did_you_mean(model_type, FAMILIES)} Supported: {', '.join(sorted(FAMILIES))}."
        )
    return FAMILIES[model_type]


def require(family: EncoderFamily, *abilities: Ability, what: str) -> None:
    """Raise ModelError, with the reason and the families that can, unless a family has these abilities.

    ``what`` says what needs them, as in "X-Mixup mixes after a post-norm self-attention". A name in
    config.json is enough to ask (``family_named``), so that a plan can before anything is loaded.
    """
    for ability in abilities:
        if ability in family.lacks:
            able = [one.name for one in _ALL if not one.lacks.keys() & set(abilities)]
            raise ModelError(f"{what}; {family.name} {family.lacks[ability]}. Use {' or '.join(able)}.")
