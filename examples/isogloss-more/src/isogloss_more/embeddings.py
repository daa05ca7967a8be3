"""An adjustment without gradient steps: embeddings of linked subwords move towards the source's."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from isogloss.plugins import (
    Adjustment,
    AdjustSetting,
    Share,
    Trained,
    Translation,
    load_tokenizer,
    load_whole,
    pair_words,
    split_words,
)


@dataclass(frozen=True, kw_only=True)
class EmbeddingPull(Adjustment):
    """Move the embedding of each target subword towards the mean of the source subwords it is linked to."""

    name: ClassVar[str] = "embedding-pull"

    share: Share = 0.5
    """Share of the way. 0 leaves the encoder as it is."""

    @property
    def needs_links(self) -> bool:
        """Word links are read."""
        return True

    def train(self, setting: AdjustSetting) -> Trained:
        """Move the embeddings, each once."""
        tokenizer = load_tokenizer(setting.start)
        model = load_whole(setting.start)
        embeddings = model.get_input_embeddings().weight
        pulls: defaultdict[int, list[Tensor]] = defaultdict(list)
        for pairs in setting.bitext.values():
            for sources, targets in list_linked_subwords(pairs, tokenizer):
                for subword in set(targets) - set(sources):
                    pulls[subword].append(embeddings.detach()[sources].mean(dim=0))
        means = {subword: torch.stack(states).mean(dim=0) for subword, states in pulls.items()}
        with torch.no_grad():
            for subword, mean in means.items():
                embeddings[subword] += self.share * (mean - embeddings[subword])
        return Trained(model, tokenizer, rows=[], warnings=(f"{len(means)} subwords were moved.",))


def list_linked_subwords(pairs: list[Translation], tokenizer: Any) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the subwords of both words of each link."""
    words = [pair_words(pair) for pair in pairs]
    source_texts = split_words([source for source, _ in words], tokenizer)
    target_texts = split_words([target for _, target in words], tokenizer)
    for pair, source, target in zip(pairs, source_texts, target_texts, strict=True):
        for source_word, target_word in pair.links or ():
            yield subwords_of(source, source_word), subwords_of(target, target_word)


def subwords_of(text: Any, word: int) -> list[int]:
    """Return the subwords of one word of a text."""
    return [subword for subword, owner in zip(text.subwords, text.words, strict=True) if owner == word]
