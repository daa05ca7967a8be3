"""The description of an encoder family: the places of modules in its layers, and other differences.

The question "where is the feed-forward of layer i?" is answered here once, for mixup, adapters, language
modules, freezing, pruning and similarity. The families themselves are values (``families``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Architecture

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
    from transformers.utils import ModelOutput

    Config: TypeAlias = PretrainedConfig
    Model: TypeAlias = PreTrainedModel
    """An encoder, with or without a head."""
    Output: TypeAlias = ModelOutput
    Tokenizer: TypeAlias = PreTrainedTokenizerFast
else:  # torch and transformers are slow to import, and a plan needs neither.
    Config = Model = Output = Tokenizer = Any


ModuleName = Literal[
    "block", "query", "key", "value", "attention_output", "attention_norm", "feed_forward_in",
    "feed_forward_out", "feed_forward_norm",
]  # fmt: skip
"""A module of a layer."""

BERTS_SPREAD = 0.02
"""Standard deviation of BERT's initial weights, used if config.json states none (mT5)."""

SubLayer = Literal["block", "attention", "feed_forward"]
"""A sub-layer, or the whole layer. attention and feed_forward together are the block."""

Ability = Literal["post-norm", "projections", "new-positions", "attention-kinds", "new-encoders"]
"""A property that a method may require and some families lack.

post-norm: attention and feed-forward end in a norm, after the residual (else they begin with one).
projections: queries, keys and values each have a module, named by the site. new-positions: position ids can
be set, and hence be reset within a row. attention-kinds: the attention implementation can be chosen (else it
is eager). new-encoders: one can be pretrained from random weights by masked language modelling.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One layer of an encoder: the dotted names of its modules in the model.

    Except for dropouts, each of these modules runs exactly once per forward pass, and returns a tensor or a
    tuple that starts with one.
    """

    layer: int = 0
    """Layer number from 1, as in the papers."""

    block: str = ""
    """Name of the whole layer."""

    attention: tuple[str, ...]
    """Modules of the attention sub-layer with its norm, in order."""

    query: str | None
    key: str | None
    value: str | None
    """Projections, or None in families without the ability "projections"."""

    attention_output: str
    """Projection of all heads to the hidden size. Adapters after attention follow it."""

    attention_norm: str
    """Norm after attention and its residual, or before attention in families without post-norm."""

    attention_dropout: str = ""
    """Dropout of attention weights, or "" without "projections". Fused attention reads only its rate."""

    output_dropout: str = ""
    """Dropout between the attention's output and the residual, or "" for none."""

    feed_forward: tuple[str, ...]
    """Modules of the feed-forward sub-layer with its norm, in order."""

    feed_forward_in: str
    """Projection to the intermediate size, or to twice that size in gated feed-forwards."""

    feed_forward_out: str
    """Projection to the hidden size. Adapters after the feed-forward follow it."""

    feed_forward_norm: str
    """Norm after feed-forward and residual, or before the feed-forward in families without post-norm."""

    own_adapters: str = ""
    """Adapters of each language from pretraining, by its name, or "" in families without them."""

    def module(self, model: nn.Module, name: ModuleName) -> nn.Module:
        """Return a module of this layer in the site's model, or in a copy of the model.

        Raises ModelError for a projection that is not a separate module.
        """
        path: str | None = getattr(self, name)
        if path is None:
            raise ModelError(
                f"layer {self.layer}: the {name} projection is not a separate module in this family."
            )
        return model.get_submodule(path)

    def parameters(self, model: nn.Module, sub_layer: SubLayer) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield name and value of each parameter in a sub-layer."""
        names = {"block": (self.block,), "attention": self.attention, "feed_forward": self.feed_forward}
        for name in names[sub_layer]:
            yield from model.get_submodule(name).named_parameters(prefix=name)

    def rename_modules(self, rename: Callable[[str], str]) -> "Site":
        """Return the site with all module names inside the layer mapped by a function."""
        new_paths: dict[str, Any] = {}
        for name in (attribute.name for attribute in fields(self)[2:]):
            path = getattr(self, name)
            if isinstance(path, tuple):
                new_paths[name] = tuple(rename(part) for part in path)
            else:
                new_paths[name] = path and rename(path)
        return replace(self, **new_paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFamily:
    """A family of Hugging Face encoders. All methods accept an encoder or a model with a head."""

    name: str
    """The family's ``model_type`` in config.json."""

    first_position: int
    """Position id of the first subword of a text."""

    lacks: Mapping[Ability, str]
    """Missing abilities, with what the family does instead (see ``require``)."""

    layers: str
    """Name of the list of layers in the encoder."""

    layer: Site
    """Names of the modules in each layer, relative to it."""

    architecture: Mapping[str, str]
    """Field of config.json for each field of ``Architecture``."""

    extra_config: Callable[[Architecture], Mapping[str, object]]
    """Function that returns further fields of config.json.

    It raises ConfigError for architectures that the family does not allow.
    """

    dropouts: tuple[str, ...]
    """Dropout rates in config.json."""

    tokenizer: str
    """Class in transformers of a new encoder's tokenizer."""

    masked_lm_scores: Callable[[Model, Tensor], Tensor]
    """Function that applies a masked-LM model's head to last-layer states [… dim] and returns […
    vocabulary]."""

    tag_scores: Callable[[Model, Tensor], Tensor]
    """Function that applies a token classifier's head to last-layer states [… dim] and returns [… label]."""

    lifted_where: tuple[str, bool] | None = None
    """Field of config.json that lifts a decoder's mask, with its value for a lifted mask. Default: not a
    decoder.

    With the mask, a subword attends to itself and to earlier ones.
    """

    encoder_class: str = "AutoModel"
    """Class in transformers that loads only the encoder. Halves of translation models need their own
    class."""

    renamed_weights: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions of weights' names in a folder, with their names in that class."""

    renamed_choices: Mapping[str, str] = field(default_factory=dict)
    """The same, if a head for multiple choice is read as a sequence classifier with one score."""

    own_heads: tuple[str, ...] = ()
    """Auto classes for which new heads are our own linear layers, because transformers has none that fits."""

    decoder_heads: tuple[str, ...] = ()
    """Auto classes with heads that read the states of a decoder, which does not run here."""

    is_rotary: bool = False
    """Whether positions are rotations, without a table."""

    word_embeddings: str = "embeddings"
    """Name in the encoder of the module with the weights of embeddings."""

    longest: int = 0
    """Maximum length of texts in pretraining, if config.json does not state it."""

    loaded_with: Mapping[str, object] = field(default_factory=dict)
    """Fields of config.json that are set whenever an encoder is loaded."""

    languages: Callable[[Config], tuple[str, ...]] = lambda _: ()
    """Function that returns the codes of the languages with separate modules in an encoder of this family."""

    @property
    def is_decoder(self) -> bool:
        """Whether its encoders are decoders, pretrained to predict the next subword."""
        return self.lifted_where is not None

    def sites(self, encoder: Model) -> list[Site]:
        """Return the layers from first to last."""
        prefix = f"{encoder_prefix(encoder)}{self.layers}."
        blocks = [f"{prefix}{index}" for index in range(encoder.config.num_hidden_layers)]
        return [
            replace(self.layer.rename_modules(f"{block}.".__add__), layer=layer, block=block)
            for layer, block in enumerate(blocks, start=1)
        ]

    def embeddings(self, encoder: Model) -> nn.Module:
        """Return the module with the weights of the embeddings."""
        module: nn.Module = encoder.get_submodule(f"{encoder_prefix(encoder)}{self.word_embeddings}")
        return module

    def longest_text(self, config: Config) -> int:
        """Return the maximum length of texts in pretraining, in subwords including special ones.

        Longer texts fail with absolute positions, and lose accuracy with relative ones.
        """
        return self.longest or int(config.max_position_embeddings) - self.first_position

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, object]:
        """Return an architecture as fields of config.json.

        ``padding`` is the id of the padding subword. Vocabulary, special subwords and dropout are set
        elsewhere. Raises ConfigError if the family does not allow the architecture.
        """
        shape = {field: getattr(architecture, name) for name, field in self.architecture.items()}
        if self.first_position:  # The position table also has rows for ids up to the padding's id.
            shape[self.architecture["positions"]] += padding + 1
        return {**shape, **self.extra_config(architecture)}


def encoder_prefix(model: Model) -> str:
    """Return the prefix of the encoder's module names: "bert." in a model, "" in an encoder."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."


def head_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model's head by name, including the pooler, which may be new."""
    prefix = encoder_prefix(model)
    return {
        name: weight
        for name, weight in model.named_parameters()
        if not name.startswith(prefix) or name.startswith(f"{prefix}pooler.")
    }


def initial_spread(config: Config) -> float:
    """Return the standard deviation of new weights of an encoder."""
    spreads = (getattr(config, name, None) for name in ("initializer_range", "init_std"))
    return float(next((spread for spread in spreads if spread), BERTS_SPREAD))


def check_layers(count: int, layers: Sequence[int]) -> None:
    """Raise ConfigError for a layer that an encoder of ``count`` layers does not have."""
    for layer in layers:
        if not -count - 1 <= layer <= count:
            raise ConfigError(
                f"no layer {layer}: this encoder has {count} layers. Use 0 (the embeddings) to {count}, or "
                f"-1 (the last)."
            )


def check_outer_layers(name: str, layers: int, lowest: int, highest: int, transition: int) -> None:
    """Raise ConfigError if no layer is left between the lowest and the highest, with their transitions."""
    transitions = transition * ((lowest > 0) + (highest > 0))
    if lowest + highest + transitions >= layers:
        raise ConfigError(
            f"{name}: lowest = {lowest}, highest = {highest} and transition = {transition} leave none of "
            f"{layers} layers between them. Lower one of them."
        )


_MARK = "isogloss_frozen"
"""Attribute of frozen parameters. Other parameters without gradients belong to a training's state
(``meta_learning``)."""


def freeze(parameters: Iterable[nn.Parameter]) -> None:
    """Freeze parameters, so that training does not change them until they are thawed."""
    for parameter in parameters:
        parameter.requires_grad_(False)
        setattr(parameter, _MARK, True)


def thaw(model: nn.Module) -> None:
    """Let training change all parameters of a model."""
    for parameter in model.parameters():
        parameter.requires_grad_(True)
        vars(parameter).pop(_MARK, None)


def unfrozen_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are not frozen, by name."""
    return {name: parameter for name, parameter in model.named_parameters() if not hasattr(parameter, _MARK)}
