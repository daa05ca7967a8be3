"""Manifold mixup in one layer of an encoder: the states of a translation are mixed with its source's.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Section 4.1, Eqs 2-5. The encoder
runs on [source rows; target rows] in one pass. In one layer the self-attention sub-layer, with residual and
norm, gives h_S and h_T (Eq. 2). For target rows, a second sub-layer with the same weights attends to the
source (Eq. 3); its residual is the (1-λ) term of Eq. 4, and its norm the layer's own. The feed-forward
follows for all rows.

Eq. 3's weights were trained to attend within a text, and need not find a word's translation. With ``attends``
"cosine" they are computed from the cosine of the states of both texts, with "links" from word links; gold
links are an upper bound.

The ratio λ follows from the entropy of attention (Eq. 5 and the line after it). A is the attention of Eq. 3,
head by head. For H(A) its raw weights are normalised over the source's subwords, for H(Aᵀ) the same raw
weights over the target's: only a distribution has an entropy. Padding is neither attended to nor counted.

Mixing states requires no such sub-layer, so that encoders with norms first and decoders mix too: the states
that the layer returns become h̃_T = (1-λ)h_T + λ·A·h_S, with the same A and λ.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.untrusted import parse_json, read_regular
from isogloss.encoders.added.active_language import active_rows, languages_of_halves
from isogloss.encoders.added.added_weights import write_weights
from isogloss.encoders.added.language_modules import encoder_of, language_site
from isogloss.encoders.families import family_named, family_of, require
from isogloss.encoders.family import Config, Model, Output, Site

SETTINGS, WEIGHTS = "mixup.json", "mixup.safetensors"
"""Files in the folder of an ordinary model."""

NEEDS = (
    "X-Mixup attends to another text with a post-norm layer's own query, key and value matrices, unless "
    'mixed = "states"'
)

LINKS_NEEDED = 'attends = "links" mixes words with those that they are linked to'
MAKE_LINKS = (
    "Let translations be made by [translate] of a recipe or by a translator that knows links (built-in), "
    "give them links (TaggedSentence.links), or read inputs without translations."
)

Residual = Literal["normed", "summed"]

Attends = Literal["cosine", "links"]
"""What the weights of Eq. 3 are made of instead of queries and keys."""

Mixed = Literal["states"]
"""What is mixed instead of the outputs of self-attention."""

SHARPNESS = 20.0
"""Weights by cosine are a softmax of so many times the cosine."""

UNLINKED = -1e4
"""Raw weight of subwords without a link, next to 0 of linked ones: its softmax is 0 in any precision."""


class LearnedRatio(nn.Module):
    """λ = λ₀·σ((H(A)+H(Aᵀ))·W+b), one for each pair; W and b are trained.

    Both begin at 0, where the sigmoid is steepest: every pair has half of the largest ratio, and the first
    update already distinguishes low entropy from high. (The authors' code has W = 1, which puts λ within
    percents of λ₀ for any text, and never trains it.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, entropy: Float[Tensor, " pair"], largest: float) -> Float[Tensor, " pair"]:
        """Return λ from H(A)+H(Aᵀ), below ``largest`` (λ₀)."""
        return largest * torch.sigmoid(entropy * self.weight + self.bias)


@dataclass(frozen=True, kw_only=True)
class Mixup:
    """The layer that mixes, and the ratio λ."""

    layer: int
    """The layer that mixes, from 1 (l+1 in the equations)."""

    ratio: float = 0.5
    """λ₀: the largest ratio, or the ratio of all pairs if it is not learned; 0 disables mixup."""

    learned: bool = True
    """Whether each pair has its own learned ratio (Eq. 5)."""

    residual: Residual = "normed"
    """The h_T of Eq. 4: the sub-layer's output after its norm (the paper), or the sum before it.

    As the ratio goes to 0, "normed" gives states normed twice, and "summed" the unmixed layer.
    """

    attends: Attends | None = None
    """cosine: a subword attends to the source by the cosine of h_T and h_S, the same in all heads; links:
    evenly to the subwords of the words that its word is linked to, and one without any is not mixed; by the
    layer's queries and keys (the paper) when left out.

    With links, Eq. 5 reads the entropies of these weights. Those of a subword without a link are even over
    the whole text, so a pair with few links counts as uncertain.
    """

    mixed: Mixed | None = None
    """states: those that the layer returns, in any family, by cosine unless by links; ``residual`` is unused.
    The outputs of self-attention (the paper) when left out.
    """

    ratio_module: LearnedRatio = field(default_factory=LearnedRatio, compare=False)
    """W and b of Eq. 5; unused if the ratio is not learned."""


@dataclass
class MixingTrace:
    """The ratios used by a layer that mixes."""

    ratios: Tensor | None = None
    """[pair]: λ of each pair in the last pass, of one without links 0; None before it, and if nothing is
    mixed."""

    weights: Tensor = field(default_factory=lambda: torch.empty(0))
    """[pair head target source]: the weights of Eq. 3 in the last pass, before dropout; else empty. By links,
    those of a subword that has none are there too, and unused."""

    def __repr__(self) -> str:
        """Return the number of pairs, and the shape of the weights."""
        pairs = 0 if self.ratios is None else len(self.ratios)
        return f"MixingTrace(ratios of {pairs} pairs, weights {list(self.weights.shape)})"


def check_mixup(config: Config, layer: int, mixed: Mixed | None = None) -> None:
    """Raise ModelError for a family that cannot mix, ConfigError for a layer that does not exist."""
    family = family_named(config.model_type, "X-Mixup")
    if mixed is None:
        require(family, "post-norm", "projections", what=NEEDS)
    last = config.num_hidden_layers
    if not 1 <= layer <= last:
        raise ConfigError(f"X-Mixup: no layer {layer} to mix in: this encoder has the layers 1 to {last}.")


@contextmanager
def mixing(
    model: Model,
    mixup: Mixup,
    mask: Tensor | None,
    languages: tuple[str, ...] = (),
    links: Tensor | None = None,
    *,
    in_this_thread: bool = False,
) -> Iterator[MixingTrace]:
    """Let one layer mix while a model runs on [source rows; target rows], equally many of each.

    Row i of one half is the translation of row i of the other. ``mask`` [row subword] is 1 at real subwords,
    None without padding. ``languages`` are those of the rows, by default the active ones. ``links`` [pair
    target source] are true between subwords of linked words, or weights such as those of a translator's
    cross-attention; ConfigError where the mixup attends to these and there are none. With ``ratio`` 0 the
    model is unchanged. With ``in_this_thread`` nothing is mixed in other threads that run the model; layers
    that are recomputed for gradients may be run by another one.
    """
    check_mixup(model.config, mixup.layer, mixup.mixed)
    trace = MixingTrace()
    if mixup.ratio == 0:
        yield trace
        return
    site, read = family_of(model).sites(model)[mixup.layer - 1], _links_read(mixup, links)
    hook = partial(_hook, thread=get_ident() if in_this_thread else None)
    if mixup.mixed == "states":
        layer = _MixingLayer(model, site, mixup, mask, trace, read)
        with ExitStack() as hooks:
            hook(hooks, site.module(model, "block"), layer.after_block)
            yield trace
        return
    source, target = languages_of_halves(model, languages)
    first, second = (language_site(model, site, language) for language in (source, target))
    layer = _MixingLayer(model, second, mixup, mask, trace, read)
    separate = first.attention_norm != second.attention_norm
    with ExitStack() as hooks:
        if separate and site.attention_norm not in site.attention:
            hook(hooks, first.module(model, "attention_norm"), layer.after_source)
            hook(hooks, second.module(model, "attention_norm"), layer.after_target)
        else:  # Both sides pass one norm together.
            norm = (site if separate else second).module(model, "attention_norm")
            hook(hooks, norm, layer.after_both)
        yield trace


def _links_read(mixup: Mixup, links: Tensor | None) -> Tensor | None:
    """Return the links where a mixup attends to these; ConfigError where there are none."""
    if mixup.attends != "links":
        return None
    if links is None:
        raise ConfigError(f"X-Mixup: {LINKS_NEEDED}; found none in a batch. {MAKE_LINKS}")
    return links


def _hook(hooks: ExitStack, module: nn.Module, hook: Callable[..., Any], *, thread: int | None) -> None:
    """Let a function follow a module until the context ends, in one thread or in all."""

    def hook_here(*run: Any) -> Any:
        return hook(*run) if get_ident() == thread else None

    hooks.callback(module.register_forward_hook(hook if thread is None else hook_here).remove)


@contextmanager
def last_states(model: Model) -> Iterator[list[Tensor]]:
    """Record the last states [row subword dim] of each pass, as a head reads them; filled on exit."""
    outputs: list[Output] = []
    states: list[Tensor] = []
    handle = encoder_of(model).register_forward_hook(lambda _, __, output: outputs.append(output))
    try:
        yield states
    finally:
        handle.remove()
        states += [output.last_hidden_state for output in outputs]  # Language maps have been applied by now.


@dataclass(frozen=True)
class _MixingLayer:
    """The second sub-layer of a layer that mixes, with the target language's modules if it has any."""

    model: Model
    site: Site
    mixup: Mixup
    mask: Tensor | None
    trace: MixingTrace
    links: Tensor | None
    """[pair target source], where it attends to these."""
    source: list[Tensor] = field(default_factory=list)
    """h_S, if the source has a norm of its own."""

    def after_both(self, norm: nn.Module, inputs: tuple[Tensor, ...], normed: Tensor) -> Tensor:
        """Mix the target rows after the self-attention sub-layer; source rows are unchanged."""
        source, target = normed.chunk(2)
        return torch.cat((source, self._mixed(norm, inputs[0].chunk(2)[1], target, source)))

    def after_source(self, _: nn.Module, __: tuple[Tensor, ...], normed: Tensor) -> None:
        """Keep h_S: the source language's sub-layer runs before the target's."""
        self.source[:] = [normed]

    def after_target(self, norm: nn.Module, inputs: tuple[Tensor, ...], normed: Tensor) -> Tensor:
        """Mix the target rows with h_S."""
        return self._mixed(norm, inputs[0], normed, self.source.pop())

    def after_block(self, _: nn.Module, __: tuple[Tensor, ...], output: Any) -> Any:
        """Mix the target rows of the states that the layer returns, alone or as the first of a tuple."""
        states, *rest = output if isinstance(output, tuple) else (output,)
        source, target = states.chunk(2)
        weights, ratio = self._weights(target, source, source.dtype)
        mixed = (ratio * torch.matmul(weights[:, 0], source) + (1 - ratio) * target).to(states.dtype)
        joined = torch.cat((source, self._where_linked(mixed, target)))
        return (joined, *rest) if isinstance(output, tuple) else joined

    def _mixed(self, norm: nn.Module, summed: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Return Eq. 4; ``summed`` are the target rows before their norm."""
        with active_rows(self.model, slice(len(target), None)):
            crossed, ratio = self._attend(target, source)
            residual = target if self.mixup.residual == "normed" else summed
            # A call of the module would run this hook again.
            mixed: Tensor = norm.forward(ratio * crossed + (1 - ratio) * residual)
        return self._where_linked(mixed, target).to(target.dtype)

    def _where_linked(self, mixed: Tensor, target: Tensor) -> Tensor:
        """Return mixed states; by links those of subwords without any as they were, which no ratio leaves."""
        return mixed if self.links is None else torch.where(self.links.any(2, keepdim=True), mixed, target)

    def _attend(self, target: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return h_T|S = MultiHead(h_T, h_S, h_S) (Eq. 3) and λ [pair 1 1]."""
        module, model = self.site.module, self.model
        value = self._heads(module(model, "value")(source))
        weights, ratio = self._weights(target, source, value.dtype)
        weights = self._dropout(self.site.attention_dropout)(weights)
        states = torch.matmul(weights, value).transpose(1, 2).flatten(2)
        return self._dropout(self.site.output_dropout)(module(model, "attention_output")(states)), ratio

    def _weights(self, target: Tensor, source: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the weights of Eq. 3 [pair head target source], in a precision, and λ [pair 1 1]."""
        raw = self._raw(target, source)
        real_source, real_target = self._real(raw)
        log_weights = log_attention(raw, real_source)
        weights = log_weights.exp().to(dtype)
        if self.mixup.learned:
            entropy = two_way_entropy(raw, target=real_target, source=real_source, log_weights=log_weights)
            ratio = self.mixup.ratio_module(entropy, self.mixup.ratio)
        else:
            ratio = raw.new_full((len(raw),), self.mixup.ratio, dtype=torch.float32)
        if self.links is not None:
            ratio = ratio * self.links.flatten(1).any(dim=1)
        self.trace.weights, self.trace.ratios = weights.detach(), ratio.detach()
        return weights, ratio.to(target.dtype)[:, None, None]

    def _raw(self, target: Tensor, source: Tensor) -> Float[Tensor, "pair head target source"]:
        """Return the logits of Eq. 3's weights: for one head by cosine and of states, else for all.

        With links they are equal in all heads, but attention dropout is not.
        """
        if self.links is not None:
            raw_links = torch.where(self.links > 0, self.links.float().log(), UNLINKED)[:, None]
            heads = 1 if self.mixup.mixed else self.model.config.num_attention_heads
            return raw_links.expand(-1, heads, -1, -1)
        if self.mixup.attends == "cosine" or self.mixup.mixed:
            target, source = (normalize(side, dim=-1) for side in (target, source))
            return SHARPNESS * torch.matmul(target, source.transpose(1, 2))[:, None]
        module, model = self.site.module, self.model
        query = self._heads(module(model, "query")(target))
        key = self._heads(module(model, "key")(source))
        raw: Tensor = torch.matmul(query, key.transpose(2, 3)) * query.size(-1) ** -0.5
        return raw

    def _heads(
        self, states: Float[Tensor, "pair subword dim"]
    ) -> Float[Tensor, "pair head subword head_dim"]:
        return states.view(*states.shape[:2], self.model.config.num_attention_heads, -1).transpose(1, 2)

    def _real(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """Return the masks [pair subword] of source and target."""
        pairs, _, longest, _ = raw.shape
        if self.mask is None:
            unpadded = torch.ones(pairs, longest, dtype=torch.bool, device=raw.device)
            return unpadded, unpadded
        source, target = self.mask.bool().chunk(2)
        return source, target

    def _dropout(self, name: str) -> Callable[[Tensor], Tensor]:
        return self.model.get_submodule(name) if name else nn.Identity()


def save_mixup(mixup: Mixup, folder: Path) -> None:
    """Write mixup settings and weights into a model's folder."""
    settings = {"layer": mixup.layer, "largest": mixup.ratio}
    settings |= {name: getattr(mixup, name) for name in ("learned", "residual", "attends", "mixed")}
    write_weights(folder / WEIGHTS, mixup.ratio_module.state_dict())
    write_text(folder, SETTINGS, json.dumps(settings, indent=1) + "\n")


def load_mixup(folder: str | Path) -> Mixup | None:
    """Read what ``save_mixup`` wrote, if anything; ModelError for damaged files."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    if not (folder / SETTINGS).is_file():
        return None
    try:
        settings = parse_json(read_regular(folder / SETTINGS))
        ratio = LearnedRatio()
        ratio.load_state_dict(load_file(folder / WEIGHTS))
        return Mixup(
            layer=int(settings["layer"]),
            ratio=float(str(settings["largest"])),
            learned=bool(settings["learned"]),
            residual=settings["residual"],
            attends=settings.get("attends"),
            mixed=settings.get("mixed"),
            ratio_module=ratio,
        )
    except (OSError, SafetensorError, ValueError, LookupError, TypeError, RuntimeError) as error:
        if failure := disk_error(error):
            raise reading_error(folder, failure) from error
        raise ModelError(
            f"{folder}: {SETTINGS} and {WEIGHTS} there are damaged ({one_line(error)}). "
            f"Copy the folder again, or delete it and run again."
        ) from error


def two_way_entropy(
    raw: Float[Tensor, "pair head target source"],
    *,
    target: Bool[Tensor, "pair target"],
    source: Bool[Tensor, "pair source"],
    log_weights: Float[Tensor, "pair head target source"] | None = None,
) -> Float[Tensor, " pair"]:
    """Return H(A)+H(Aᵀ) in nats from raw weights, before any softmax; the masks are true at real subwords.

    ``log_weights`` are ``log_attention`` of them over the source, where attention has made it already.
    """
    log_weights = log_attention(raw, source) if log_weights is None else log_weights
    forward = attention_entropy(log_weights, queries=target, keys=source)
    backward = attention_entropy(log_attention(raw.transpose(2, 3), target), queries=source, keys=target)
    return forward + backward


def log_attention(
    raw: Float[Tensor, "pair head query key"], keys: Bool[Tensor, "pair key"]
) -> Float[Tensor, "pair head query key"]:
    """Return the logarithm of attention over real subwords, at least in float32."""
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
    unseen = ~keys[:, None, None, :]
    return torch.log_softmax(raw.masked_fill(unseen, torch.finfo(raw.dtype).min), dim=-1)


def attention_entropy(
    log_weights: Float[Tensor, "pair head query key"],
    *,
    queries: Bool[Tensor, "pair query"],
    keys: Bool[Tensor, "pair key"],
) -> Float[Tensor, " pair"]:
    """Return the mean over heads and real queries of the entropy of attention (Eq. 5)."""
    # Outside, the weight is 0 and its logarithm huge: their product must be 0, and so must its gradient.
    inside = log_weights.masked_fill(~keys[:, None, None, :], 0.0)
    entropies = -(log_weights.exp() * inside).sum(dim=3).mean(dim=1)
    return (entropies * queries).sum(dim=1) / queries.sum(dim=1)
