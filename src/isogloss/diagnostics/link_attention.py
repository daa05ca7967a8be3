"""Link attention: does the attention of X-Mixup find the word that translates a word?

X-Mixup, Section 4.1, Eq. 3: in the layer that mixes, a sentence attends to its translation by the queries and
keys that attend within a sentence elsewhere. What is mixed into a word is its translation only as far as
these weights lie on it; word links say where they should. Any encoder or model can be asked, in every layer,
what attention finds and what the cosine of the same states would.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.core.progress import Progress
from isogloss.core.rows.mixing import LinkAttention as LinkAttentionRow
from isogloss.core.run_parts import Positive
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting
from isogloss.encoders.mixup import Mixup, mixing
from isogloss.encoders.subwords import pad_rows, padding_mask
from isogloss.training.bitext import AlignedBitext, PairEncoding, read_bitext
from isogloss.training.evaluation import in_batches
from isogloss.training.precision import release_memory, scoring

Looks = Literal["attention", "cosine"]


@dataclass(frozen=True, kw_only=True)
class LinkAttention(Diagnostic):
    """How much of the attention of Eq. 3 of X-Mixup lies on the word that a word translates, by layer."""

    name: ClassVar[str] = "link-attention"
    subject: ClassVar[str] = "words"
    version: ClassVar[int] = 1

    looks: tuple[Looks, ...] = ("attention", "cosine")
    """What the weights are made of: attention (the paper), or cosine (`attends = "cosine"` of x-mixup)."""

    longest: Positive = 64
    """Maximum sentence length in words; longer translations are skipped."""

    def measure(self, setting: MeasureSetting) -> list[LinkAttentionRow]:
        """Return, for each language after the first, a row for each layer, of attention to the first."""
        loaded = setting.encoder(setting.subjects[0])
        first, *others = setting.languages
        rows: list[LinkAttentionRow] = []
        for other in others:
            pairs = self._pairs(setting, loaded, f"{first}-{other}")
            for look, layer in product(self.looks, range(1, loaded[0].config.num_hidden_layers + 1)):
                mixup = Mixup(layer=layer, learned=False, attends=None if look == "attention" else look)
                scores = _over_pairs(setting, loaded, pairs, mixup)
                mass, hits, chance = scores.mean(dim=0).tolist()
                rows.append(
                    LinkAttentionRow(
                        model=setting.subjects[0].id,
                        first=first,
                        second=other,
                        layer=layer,
                        look=look,
                        subwords=len(scores),
                        mass=mass,
                        hits=hits,
                        chance=chance,
                    )
                )
        return rows

    def _pairs(self, setting: MeasureSetting, loaded: LoadedEncoder, name: str) -> AlignedBitext:
        pairs = read_bitext(
            {name: setting.bitext(name)}, loaded[1], PairEncoding(pulled="words", longest=self.longest)
        )
        if not pairs.rows[0]["pulled"]:
            raise DataError(
                f"{self.name}: of {pairs.rows[0]['translations']} translations {name} none of at most "
                f"{self.longest} words has a link. Align more of them, or let longest be larger."
            )
        return pairs


def _over_pairs(
    setting: MeasureSetting, loaded: LoadedEncoder, pairs: AlignedBitext, mixup: Mixup
) -> Float[Tensor, "subword 3"]:
    """Return mass, hit and chance of each linked subword of the second language."""
    parts = []
    batches = in_batches([pairs.length(number) for number in range(len(pairs))])
    for done, numbers in enumerate(batches, start=1):
        weights = _weights(loaded, pairs, numbers, mixup, setting.precision)
        parts.append(on_links(weights, *_links(pairs, numbers, weights.shape[1:])))
        setting.on_progress(Progress("link attention", done, len(batches), f"layer {mixup.layer}"))
    release_memory()
    return torch.cat(parts)


def _weights(
    loaded: LoadedEncoder, pairs: AlignedBitext, numbers: Sequence[int], mixup: Mixup, precision: str
) -> Float[Tensor, "pair target source"]:
    """Return the weights of Eq. 3, the mean over heads, on the CPU."""
    texts = [pairs[number][side].tolist() for side in (0, 1) for number in numbers]
    sides = zip(*(pairs.languages(number) for number in numbers), strict=True)
    ids, mask = pad_rows(texts, pairs.padding), padding_mask([len(text) for text in texts])
    model = loaded[0].base_model
    model.eval()
    with scoring(model, precision) as device:
        ids, mask = ids.to(device), mask.to(device)
        with mixing(loaded[0], mixup, mask, tuple(code for side in sides for code in side)) as trace:
            model(input_ids=ids, attention_mask=mask)
    return trace.weights.float().mean(dim=1).cpu()


def _links(
    pairs: AlignedBitext, numbers: Sequence[int], shape: Sequence[int]
) -> tuple[Bool[Tensor, "pair target source"], Float[Tensor, " pair"]]:
    """Return which subwords belong to linked words, and how many subwords each source has."""
    links = torch.zeros(len(numbers), *shape, dtype=torch.bool)
    for row, number in enumerate(numbers):
        for begin, end, other_begin, other_end in pairs[number].aligned:
            links[row, other_begin:other_end, begin:end] = True
    return links, torch.tensor([float(len(pairs[number].source)) for number in numbers])


def on_links(
    weights: Float[Tensor, "pair target source"],
    links: Bool[Tensor, "pair target source"],
    lengths: Float[Tensor, " pair"],
) -> Float[Tensor, "subword 3"]:
    """Return mass, hit and chance for each target subword with a link.

    The weight on what it is linked to; whether the largest weight lies there; the weight if all were equal.
    """
    mass = (weights * links).sum(dim=2)
    hits = links.gather(2, weights.argmax(dim=2, keepdim=True)).squeeze(2).float()
    chance = links.sum(dim=2) / lengths[:, None]
    return torch.stack((mass, hits, chance), dim=2)[links.any(dim=2)]
