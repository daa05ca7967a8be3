"""Manifold mixup in one layer of an encoder: states of a translation are mixed with its source's.

Yang et al. (2022), "Enhancing Cross-lingual Transfer by Manifold Mixup", Section 4.1, Eqs 2-5. The encoder
runs on [source rows; target rows] in one pass. In one layer the self-attention sub-layer, with residual and
norm, gives h_S and h_T (Eq. 2). For target rows, a second sub-layer with the same weights attends to the
source (Eq. 3); its residual is the (1-λ) term of Eq. 4, and its norm is the layer's norm. The feed-forward
follows for all rows.

Eq. 3's weights were trained to attend within a text, and need not find a word's translation. With ``attends``
"cosine" they are computed from the cosine of the states of both texts, with "links" from word links; gold
links are an upper bound.

The ratio λ follows from the entropy of attention (Eq. 5 and the line after it). A is the attention of Eq. 3,
head by head. For H(A) its raw weights are normalised over the source's subwords, for H(Aᵀ) the same raw
weights over the target's, because only distributions have an entropy. Padding is neither attended to nor
counted.

Mixing states requires no such sub-layer, so it also works in pre-norm encoders and decoders: the states that
the layer returns become h̃_T = (1-λ)h_T + λ·A·h_S, with the same A and λ.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.run_parts import Attends, Mixed, Residual
from isogloss.core.untrusted import parse_json, read_regular
from isogloss.encoders.added.active_language import active_rows, languages_of_halves
from isogloss.encoders.added.added_weights import write_weights
from isogloss.encoders.added.language_modules import language_site
from isogloss.encoders.families import family_named, family_of, require
from isogloss.encoders.family import Config, Model, Site

SETTINGS = "mixup.json"
WEIGHTS = "mixup.safetensors"
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

SHARPNESS = 20.0
"""Factor of the cosine in the softmax of weights by cosine."""

UNLINKED = -1e4
"""Raw weight of subwords without a link, compared with 0 for links. Its softmax is 0 in any precision."""


class LearnedRatio(nn.Module):
    """λ = λ₀·σ((H(A)+H(Aᵀ))·W+b) for each pair, with trained W and b.

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
    """The mixup layer and the ratio λ."""

    layer: int
    """The mixup layer, from 1 (l+1 in the equations)."""

    ratio: float = 0.5
    """λ₀: the largest ratio, or the ratio of all pairs if it is not learned. 0 disables mixup."""

    learned: bool = True
    """Whether each pair has its own learned ratio (Eq. 5)."""

    residual: Residual = "normed"
    """The h_T of Eq. 4: the sub-layer's output after its norm (the paper), or the sum before it.

    As the ratio goes to 0, "normed" gives states normed twice, and "summed" the unmixed layer.
    """

    attends: Attends | None = None
    """Weights of Eq. 3. cosine: a subword attends to the source by the cosine of h_T and h_S, the same in all
    heads. links: evenly to the subwords of linked words; a subword without links is not mixed. Default:
    the layer's queries and keys (the paper).

    With links, Eq. 5 reads the entropies of these weights. The weights of a subword without a link are even
    over the whole text, so a pair with few links counts as uncertain.
    """

    mixed: Mixed | None = None
    """states: mix the states that the layer returns, in any family, by cosine unless by links; ``residual``
    is unused. Default: the outputs of self-attention (the paper)."""

    ratio_module: LearnedRatio = field(default_factory=LearnedRatio, compare=False)
    """W and b of Eq. 5, unused if the ratio is not learned."""


@dataclass
class MixingTrace:
    """The ratios and weights in a mixup layer."""

    ratios: Tensor | None = None
    """[pair]: λ of each pair in the last pass, 0 for a pair without links. None before the first pass, and if
    nothing is mixed."""

    weights: Tensor = field(default_factory=lambda: torch.empty(0))
    """[pair head target source]: the weights of Eq. 3 in the last pass, before dropout, or empty before the
    first pass. With links, the unused weights of subwords without links are included."""

    def __repr__(self) -> str:
        """Return the number of pairs, and the shape of the weights."""
        pairs = 0 if self.ratios is None else len(self.ratios)
        return f"MixingTrace(ratios of {pairs} pairs, weights {list(self.weights.shape)})"


def check_mixup(config: Config, layer: int, mixed: Mixed | None = None) -> None:
    """Raise ModelError for a family that cannot mix, ConfigError for a layer that does not exist."""
    family = family_named(config.model_type, "X-Mixup")
    if mixed is None:
        require(family, "post-norm", "projections", use=NEEDS)
    layers = config.num_hidden_layers
    if not 1 <= layer <= layers:
        raise ConfigError(f"X-Mixup: no layer {layer} to mix in: this encoder has the layers 1 to {layers}.")


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
    """Mix in one layer while a model runs on source rows followed by target rows.

    The number of source and target rows must be equal.
    """
    check_mixup(model.config, mixup.layer, mixup.mixed)
    trace = MixingTrace()
    if mixup.ratio == 0:
        yield trace
        return
    site = family_of(model).sites(model)[mixup.layer - 1]
    links = _check_links(mixup, links)
    hook = partial(_hook, thread=get_ident() if in_this_thread else None)
    if mixup.mixed == "states":
        layer = _MixingLayer(model, site, mixup, mask, trace, links)
        with ExitStack() as hooks:
            hook(hooks, site.module(model, "block"), layer.after_block)
            yield trace
        return
    source, target = languages_of_halves(model, languages)
    source_site = language_site(model, site, source)
    target_site = language_site(model, site, target)
    layer = _MixingLayer(model, target_site, mixup, mask, trace, links)
    has_two_norms = source_site.attention_norm != target_site.attention_norm
    with ExitStack() as hooks:
        if has_two_norms and site.attention_norm not in site.attention:
            hook(hooks, source_site.module(model, "attention_norm"), layer.after_source)
            hook(hooks, target_site.module(model, "attention_norm"), layer.after_target)
        else:  # Both sides pass one norm together.
            norm = (site if has_two_norms else target_site).module(model, "attention_norm")
            hook(hooks, norm, layer.after_both)
        yield trace


def _check_links(mixup: Mixup, links: Tensor | None) -> Tensor | None:
    """Return the links for a mixup by links, or None for any other mixup.

    Raises ConfigError for a mixup by links without links.
    """
    if mixup.attends != "links":
        return None
    if links is None:
        raise ConfigError(f"X-Mixup: {LINKS_NEEDED}; found none in a batch. {MAKE_LINKS}")
    return links


def _hook(hooks: ExitStack, module: nn.Module, hook: Callable[..., Any], *, thread: int | None) -> None:
    """Call a function after a module's forward pass until the context ends, in one thread or in all."""

    def hook_here(*run: Any) -> Any:
        return hook(*run) if get_ident() == thread else None

    hooks.callback(module.register_forward_hook(hook if thread is None else hook_here).remove)


@dataclass(frozen=True)
class _MixingLayer:
    """The second sub-layer of a mixup layer, with the target language's modules if it has any."""

    model: Model
    site: Site
    mixup: Mixup
    mask: Tensor | None
    trace: MixingTrace
    links: Tensor | None
    """[pair target source], for a mixup by links."""
    source: list[Tensor] = field(default_factory=list)
    """h_S, if the source has a separate norm."""

    def after_both(self, norm: nn.Module, inputs: tuple[Tensor, ...], states: Tensor) -> Tensor:
        """Mix the target rows after the self-attention sub-layer, leaving source rows unchanged."""
        source, target = states.chunk(2)
        return torch.cat((source, self._mix(norm, inputs[0].chunk(2)[1], target, source)))

    def after_source(self, _: nn.Module, __: tuple[Tensor, ...], states: Tensor) -> None:
        """Store h_S, because the source language's sub-layer runs before the target's."""
        self.source[:] = [states]

    def after_target(self, norm: nn.Module, inputs: tuple[Tensor, ...], states: Tensor) -> Tensor:
        """Mix the target rows with h_S."""
        return self._mix(norm, inputs[0], states, self.source.pop())

    def after_block(self, _: nn.Module, __: tuple[Tensor, ...], output: Any) -> Any:
        """Mix the target rows of the states that the layer returns, by themselves or first in a tuple."""
        states, *other_outputs = output if isinstance(output, tuple) else (output,)
        source, target = states.chunk(2)
        weights, ratio = self._weights(target, source, source.dtype)
        mixture = (ratio * torch.matmul(weights[:, 0], source) + (1 - ratio) * target).to(states.dtype)
        all_rows = torch.cat((source, self._where_linked(mixture, target)))
        return (all_rows, *other_outputs) if isinstance(output, tuple) else all_rows

    def _mix(self, norm: nn.Module, target_sums: Tensor, target: Tensor, source: Tensor) -> Tensor:
        """Return Eq. 4, with the target rows before their norm in ``target_sums``."""
        with active_rows(self.model, slice(len(target), None)):
            source_states, ratio = self._attend(target, source)
            residual = target if self.mixup.residual == "normed" else target_sums
            # A call of the module would run this hook again.
            mixture: Tensor = norm.forward(ratio * source_states + (1 - ratio) * residual)
        return self._where_linked(mixture, target).to(target.dtype)

    def _where_linked(self, mixture: Tensor, target: Tensor) -> Tensor:
        """Return mixed states, with unmixed states of subwords without links (which no ratio gives)."""
        if self.links is None:
            return mixture
        return torch.where(self.links.any(2, keepdim=True), mixture, target)

    def _attend(self, target: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return h_T|S = MultiHead(h_T, h_S, h_S) (Eq. 3) and λ [pair 1 1]."""
        module = self.site.module
        model = self.model
        value = self._heads(module(model, "value")(source))
        weights, ratio = self._weights(target, source, value.dtype)
        weights = self._dropout(self.site.attention_dropout)(weights)
        states = torch.matmul(weights, value).transpose(1, 2).flatten(2)
        return self._dropout(self.site.output_dropout)(module(model, "attention_output")(states)), ratio

    def _weights(self, target: Tensor, source: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the weights of Eq. 3 [pair head target source], in a precision, and λ [pair 1 1]."""
        raw = self._raw(target, source)
        source_mask, target_mask = self._masks(raw)
        log_weights = log_attention(raw, source_mask)
        weights = log_weights.exp().to(dtype)
        if self.mixup.learned:
            entropy = two_way_entropy(raw, target=target_mask, source=source_mask, log_weights=log_weights)
            ratio = self.mixup.ratio_module(entropy, self.mixup.ratio)
        else:
            ratio = raw.new_full((len(raw),), self.mixup.ratio, dtype=torch.float32)
        if self.links is not None:
            ratio = ratio * self.links.flatten(1).any(dim=1)
        self.trace.weights = weights.detach()
        self.trace.ratios = ratio.detach()
        return weights, ratio.to(target.dtype)[:, None, None]

    def _raw(self, target: Tensor, source: Tensor) -> Float[Tensor, "pair head target source"]:
        """Return the logits of Eq. 3's weights, for one head by cosine or for states, else for all.

        With links they are equal in all heads, but attention dropout is not.
        """
        if self.links is not None:
            raw_links = torch.where(self.links > 0, self.links.float().log(), UNLINKED)[:, None]
            heads = 1 if self.mixup.mixed else self.model.config.num_attention_heads
            return raw_links.expand(-1, heads, -1, -1)
        if self.mixup.attends == "cosine" or self.mixup.mixed:
            target, source = (normalize(side, dim=-1) for side in (target, source))
            return SHARPNESS * torch.matmul(target, source.transpose(1, 2))[:, None]
        module = self.site.module
        model = self.model
        query = self._heads(module(model, "query")(target))
        key = self._heads(module(model, "key")(source))
        raw: Tensor = torch.matmul(query, key.transpose(2, 3)) * query.size(-1) ** -0.5
        return raw

    def _heads(
        self, states: Float[Tensor, "pair subword dim"]
    ) -> Float[Tensor, "pair head subword head_dim"]:
        return states.view(*states.shape[:2], self.model.config.num_attention_heads, -1).transpose(1, 2)

    def _masks(self, raw: Tensor) -> tuple[Tensor, Tensor]:
        """Return the masks [pair subword] of source and target."""
        pairs, _, longest, _ = raw.shape
        if self.mask is None:
            full_mask = torch.ones(pairs, longest, dtype=torch.bool, device=raw.device)
            return full_mask, full_mask
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
    """Read the mixup written by ``save_mixup``, or None without one.

    Raises ModelError for damaged files.
    """
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
    """Return H(A)+H(Aᵀ) in nats from raw weights, before any softmax.

    The masks are true at subwords of the text. ``log_weights`` are ``log_attention`` of the raw weights over
    the source. Default: computed.
    """
    log_weights = log_attention(raw, source) if log_weights is None else log_weights
    forward = attention_entropy(log_weights, queries=target, keys=source)
    backward = attention_entropy(log_attention(raw.transpose(2, 3), target), queries=source, keys=target)
    return forward + backward


def log_attention(
    raw: Float[Tensor, "pair head query key"], keys: Bool[Tensor, "pair key"]
) -> Float[Tensor, "pair head query key"]:
    """Return the logarithm of attention over subwords of the text, at least in float32."""
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
    padding = ~keys[:, None, None, :]
    return torch.log_softmax(raw.masked_fill(padding, torch.finfo(raw.dtype).min), dim=-1)


def attention_entropy(
    log_weights: Float[Tensor, "pair head query key"],
    *,
    queries: Bool[Tensor, "pair query"],
    keys: Bool[Tensor, "pair key"],
) -> Float[Tensor, " pair"]:
    """Return the mean entropy of attention (Eq. 5) over heads and queries of the text."""
    # At padding the weight is 0 and its logarithm huge; their product and its gradient must be 0.
    inside = log_weights.masked_fill(~keys[:, None, None, :], 0.0)
    entropies = -(log_weights.exp() * inside).sum(dim=3).mean(dim=1)
    return (entropies * queries).sum(dim=1) / queries.sum(dim=1)
