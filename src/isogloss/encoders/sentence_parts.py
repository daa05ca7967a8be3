"""The computation of a text's vector from the states of its encoder, as in sentence-transformers.

A pooling of its last states, then optionally linear layers and a division by the length (Reimers & Gurevych
2019, "Sentence-BERT", Section 3). ``sentence_part_files`` reads them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from isogloss.core.errors import ModelError

_ATTRIBUTE = "isogloss_sentence_parts"

States = Float[Tensor, "text subword dim"]
Mask = Int[Tensor, "text subword"]
Vectors = Float[Tensor, "text width"]


def _first(states: States, _: Mask) -> Vectors:
    return states[:, 0]


def _largest(states: States, mask: Mask) -> Vectors:
    return states.masked_fill(mask.unsqueeze(2) == 0, -torch.inf).amax(dim=1)


def _mean(states: States, mask: Mask) -> Vectors:
    weights = mask.unsqueeze(2).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _mean_by_root(states: States, mask: Mask) -> Vectors:
    weights = mask.unsqueeze(2).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).sqrt()


def _weighted_mean(states: States, mask: Mask) -> Vectors:
    places = torch.arange(1, mask.size(1) + 1, device=mask.device)
    weights = (mask * places).unsqueeze(2).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def _last(states: States, mask: Mask) -> Vectors:
    places = torch.arange(mask.size(1), device=mask.device)
    return states[torch.arange(len(states), device=mask.device), (mask * places).argmax(dim=1)]


POOLINGS: Mapping[str, Callable[[States, Mask], Vectors]] = {
    "cls": _first,
    "max": _largest,
    "mean": _mean,
    "mean_sqrt_len": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}
"""Functions by name, in the order in which several vectors are joined."""


@dataclass(frozen=True)
class SentenceParts:
    """The parts after an encoder that compute the vector of a text."""

    poolings: tuple[str, ...]
    steps: tuple[Callable[[Tensor], Tensor], ...]
    limit: int | None
    """Maximum subwords of a text, or None for the tokenizer's limit."""
    prompt: str
    """Text before every text."""
    is_lower: bool
    """Whether texts are read in lower case."""

    def vectors(self, states: States, mask: Mask) -> Vectors:
        """Return a vector for each text from its states in the last layer."""
        vectors = torch.cat([POOLINGS[name](states, mask) for name in self.poolings], dim=1)
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    def text(self, text: str) -> str:
        """Return a text with the prompt, in lower case if required."""
        return f"{self.prompt}{text.lower() if self.is_lower else text}"


def keep_sentence_parts(encoder: nn.Module, read: Callable[[], SentenceParts]) -> None:
    """Store in an encoder the function that reads its parts from its folder."""
    setattr(encoder, _ATTRIBUTE, read)


def has_sentence_parts(encoder: nn.Module) -> bool:
    """Return whether an encoder was read from a folder that defines vectors of texts."""
    return hasattr(encoder, _ATTRIBUTE)


def sentence_parts_of(encoder: nn.Module) -> SentenceParts:
    """Read the parts of an encoder's folder.

    Raises ModelError for an encoder without parts, or for parts of other kinds.
    """
    read: Callable[[], SentenceParts] | None = getattr(encoder, _ATTRIBUTE, None)
    if read is None:
        raise ModelError(
            "pooling: this encoder has no pooling: its folder has no modules.json, unlike folders of "
            'sentence-transformers. Remove pooling = "model".'
        )
    return read()
