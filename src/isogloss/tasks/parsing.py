"""Dependency parsing: a head and a relation for each word, read off the states of first subwords.

Deep biaffine attention (Dozat & Manning 2017, ``nn.biaffine``) scores arcs and relations, and the best tree
with a single root is taken (``tasks.spanning_tree``). As in under-specified optimization (Appendix A), the
first 128 words of a sentence are parsed and count, PUNCT and SYM do not, and relations have no subtypes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isogloss.core.contributions import ByMeasure
from isogloss.core.errors import ConfigError
from isogloss.encoders.own_head import load_with_own_head
from isogloss.metrics.attachment import (
    Tree,
    attachment,
    attachment_contributions,
    clas,
    content_contributions,
    universal,
)
from isogloss.nn.biaffine import BiaffineParser
from isogloss.tasks.batch import Batch, EncodedRow, forward
from isogloss.tasks.labels import most_frequent
from isogloss.tasks.sentences import LIMIT, OVERLAP
from isogloss.tasks.spanning_tree import best_tree
from isogloss.tasks.task import LabelsAre
from isogloss.tasks.trees import CUT_OFF, Sentence, gold_tree, tree_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

ROOT = "root"
"""Relation of the word below the root, and of no other (universaldependencies.org/u/dep/root.html)."""

UNSPECIFIED = "dep"
"""Relation of words that were cut off, which hang on the word before."""


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """A parsing task: its relations, how much of a sentence is parsed, and the sizes of its head."""

    name: str
    metric: ClassVar[str] = "las"
    labels_are: ClassVar[LabelsAre] = "tree"
    limit: ClassVar[int] = LIMIT
    overlap: ClassVar[int] = OVERLAP
    scored_whole: ClassVar[bool] = True

    labels: tuple[str, ...]
    """The relations; one with a subtype (nmod:poss) that is not among them is taken without (nmod)."""

    words: int = 128
    """Words of a sentence that are parsed and count in scores, its first ones (the paper's Appendix A).
    Besides, a row ends after ``limit`` subwords in training, and where the encoder ends when it is scored."""

    arc_dim: int = 512
    """Width of what a word is as a dependent and as a head, for arcs (the paper's released code)."""

    relation_dim: int = 128
    """The same, for relations (the paper's released code)."""

    dropout: float = 0.33
    """Share of these features that is dropped, alike for all words of a row (Dozat & Manning, Table 1)."""

    def __post_init__(self) -> None:
        """Refuse an inventory that no tree can be labelled with."""
        if ROOT not in self.labels:
            raise ConfigError(f"{self.name}: the relations lack {ROOT!r}, which each tree has. Add it.")

    def encode(
        self,
        examples: Sequence[Sentence],
        tokenizer: "PreTrainedTokenizerFast",
        *,
        limit: int = LIMIT,
        overlap: int = OVERLAP,
    ) -> list[EncodedRow]:
        """Turn each sentence into one row of its first words that fit; ``overlap`` has no use here.

        DataError at a relation outside the inventory, and at heads that are no tree.
        """
        del overlap
        return tree_rows(examples, self.labels, tokenizer, words=self.words, limit=limit)

    def head(self, source: str | Path, *, seed: int, attention: str = "sdpa") -> "PreTrainedModel":
        """Load an encoder and put the biaffine head on it; what is new depends on the seed alone."""
        model = load_with_own_head(source, self._new_head, labels=self.labels, seed=seed, attention=attention)
        return cast("PreTrainedModel", model)

    def scores(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return [label candidate 2]: the score of an arc, and the number of its best relation.

        Candidate 0 is the root, n the n-th word of the row; what cannot be a word's head has -inf. An arc
        from the root has the relation root, and no other has.
        """
        words, places = _words(model, batch)
        root = self.labels.index(ROOT)
        relations: Tensor = model.head.relations(words)
        relations[:, :, root, 1:] = -torch.inf
        best = relations.argmax(dim=2)
        best[:, :, 0] = root
        return torch.stack([_arcs(model, batch, words, places), best[places].float()], dim=-1)

    def loss(self, model: "PreTrainedModel", batch: Batch) -> Tensor:
        """Return the mean cross entropy of heads and that of relations, added; cut-off heads do not count."""
        words, places = _words(model, batch)
        kept = batch.heads != CUT_OFF
        arcs = _arcs(model, batch, words, places)
        relations = model.head.relations_at(words, places, batch.heads.clamp(min=0)).float()
        gold = batch.gold.masked_fill(~kept, CUT_OFF)
        summed = [
            cross_entropy(scores, right, ignore_index=CUT_OFF, reduction="sum")
            for scores, right in ((arcs, batch.heads), (relations, gold))
        ]
        return (summed[0] + summed[1]) / kept.sum().clamp(min=1)

    def decode(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Tree]:
        """Return the best tree of each sentence; words that were cut off hang on the word before."""
        full = [number for number, example in enumerate(examples) if example.words]
        if sorted(row.example for row in rows) != full or len(rows) != len(scores):
            raise ValueError(
                f"{len(rows)} rows for {len(full)} sentences: decode all rows together, each once."
            )
        found = {row.example: self._tree(one) for row, one in zip(rows, scores, strict=True)}
        none = Tree((), ())
        return [_completed(found.get(number, none), len(one.words)) for number, one in enumerate(examples)]

    def gold(self, examples: Sequence[Sentence]) -> list[Tree]:
        """Return each sentence's tree and tags; empty where there are no labels."""
        return [gold_tree(example) for example in examples]

    def score(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> float:
        """Return LAS over the first words of each sentence, PUNCT and SYM left out."""
        return attachment(gold, predicted, first=self.words).las

    def measures(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> dict[str, float]:
        """Return LAS and UAS of the first words, without and with PUNCT and SYM, then CoNLL 2018's.

        These count every word of a sentence. Nothing here looks at subtypes.
        """
        without = attachment(gold, predicted, first=self.words)
        together = attachment(gold, predicted, first=self.words, without=())
        shared_task = attachment(gold, predicted, without=())
        return {
            self.metric: without.las,
            "uas": without.uas,
            "las_with_punctuation": together.las,
            "uas_with_punctuation": together.uas,
            "conll2018_las": shared_task.las,
            "conll2018_uas": shared_task.uas,
            "conll2018_clas": clas(gold, predicted),
        }

    def contributions(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> ByMeasure:
        """Return what each sentence adds to each of the measures."""
        uas, las = attachment_contributions(gold, predicted, first=self.words)
        uas_together, las_together = attachment_contributions(gold, predicted, first=self.words, without=())
        conll_uas, conll_las = attachment_contributions(gold, predicted, without=())
        return {
            self.metric: las,
            "uas": uas,
            "las_with_punctuation": las_together,
            "uas_with_punctuation": uas_together,
            "conll2018_las": conll_las,
            "conll2018_uas": conll_uas,
            "conll2018_clas": content_contributions(gold, predicted),
        }

    def majority(self, train_examples: Sequence[Sentence], test_examples: Sequence[Sentence]) -> float:
        """Score a chain: each word hangs on the one before it, or after, by the most frequent relation.

        Which of the two, the training examples decide; punct, which is not scored, is not looked at.
        """
        train, test = self.gold(train_examples), self.gold(test_examples)
        seen = (relation for tree in train for relation in tree.relations)
        relation = most_frequent(
            (name for name in map(universal, seen) if name not in (ROOT, "punct")), self.labels
        )
        chains = [[_chain(tree, relation, step) for tree in train] for step in (-1, 1)]
        before, after = (self.score(train, chain) for chain in chains)
        return self.score(test, [_chain(tree, relation, -1 if before >= after else 1) for tree in test])

    def _new_head(self, dim: int) -> BiaffineParser:
        return BiaffineParser(
            dim,
            len(self.labels),
            arc_dim=self.arc_dim,
            relation_dim=self.relation_dim,
            dropout=self.dropout,
        )

    def _tree(self, scores: Tensor) -> Tree:
        """Take the best tree among the scores [word candidate 2] of one row."""
        count = len(scores)
        heads = best_tree(scores[:, : count + 1, 0].numpy())
        numbers = scores[torch.arange(count), heads, 1].int().tolist()
        return Tree(tuple(heads), tuple([self.labels[number] for number in numbers]))


def _words(model: "PreTrainedModel", batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return the states of words [batch word dim], and row and number of the word at each place."""
    states = forward(model.base_model, batch).last_hidden_state
    counts = torch.bincount(batch.rows, minlength=len(states))
    before = counts.cumsum(dim=0) - counts
    numbers = torch.arange(len(batch.rows), device=states.device) - before[batch.rows]
    words = states.new_zeros(len(states), int(counts.max()), states.size(-1))
    words[batch.rows, numbers] = states[batch.rows, batch.columns]
    return words, (batch.rows, numbers)


def _arcs(model: "PreTrainedModel", batch: Batch, words: Tensor, places: tuple[Tensor, Tensor]) -> Tensor:
    """Return the scores [label candidate] of arcs, -inf outside a word's own row and for the word itself."""
    scores: Tensor = model.head.arcs(words)[places].float()
    candidates = torch.arange(scores.size(1), device=scores.device)
    counts = torch.bincount(batch.rows)[batch.rows]
    possible = (candidates <= counts[:, None]) & (candidates != places[1][:, None] + 1)
    return scores.masked_fill(~possible, -torch.inf)


def _completed(tree: Tree, length: int) -> Tree:
    rest = range(len(tree.heads), length)
    return Tree((*tree.heads, *rest), (*tree.relations, *(UNSPECIFIED for _ in rest)))


def _chain(tree: Tree, relation: str, step: int) -> Tree:
    """Hang each word of a sentence on the one ``step`` words further, the last of them on the root."""
    length = len(tree.heads)
    heads = [place + step if 0 < place + step <= length else 0 for place in range(1, length + 1)]
    return Tree(tuple(heads), tuple([relation if head else ROOT for head in heads]))


PARSING = Parsing(
    name="parsing",
    labels=(
        "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj",
        "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj",
        "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum",
        "root", "vocative", "xcomp",
    ),
)  # fmt: skip
"""Universal Dependencies' 37 relations (version 2)."""
