"""Dependency parsing: a head and a relation for each word, predicted from states of first subwords.

Causal encoders use the states of last subwords. Deep biaffine attention (Dozat & Manning 2017) scores arcs
and relations, and the best single-root tree is decoded (``dependency_trees``). As in under-specified
optimization (Appendix A), the first 128 words of a sentence are parsed and scored, PUNCT and SYM are not
scored, and relations have no subtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.rows.models import ByMeasure, total
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.subwords import SplitWords, scored_subwords, special_subwords, split_words
from isogloss.features.parsing.attachment import attachment_contributions, content_contributions, universal
from isogloss.metrics.labels import Tree
from isogloss.tasks.batch import HEAD_OUTSIDE, Batch, EncodedRow, forward
from isogloss.tasks.task import (
    ROW_LIMIT,
    ROW_OVERLAP,
    SPECIAL,
    ExampleParts,
    LabelsAre,
    label_ids,
    most_frequent,
)

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.features.parsing.dependency_trees import BiaffineParser

ROOT = "root"
"""Relation of the root's only child (universaldependencies.org/u/dep/root.html)."""

UNSPECIFIED = "dep"
"""Predicted relation of truncated words, whose predicted head is the preceding word."""

VERSION_1 = {
    "auxpass": "aux:pass", "csubjpass": "csubj:pass", "dobj": "obj", "foreign": "flat:foreign",
    "mwe": "fixed", "name": "flat:name", "neg": "advmod", "nsubjpass": "nsubj:pass", "remnant": "orphan",
}  # fmt: skip
"""Relations that exist only in version 1 of Universal Dependencies, and their equivalents in version 2."""

Sentence = ParsedSentence | TaggedSentence
"""A sentence split into words. Without heads it is unlabelled for this task."""


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """A parsing task: its relations, the longest sentence, and the sizes of its head."""

    name: str
    metric: ClassVar[str] = "las"
    labels_are: ClassVar[LabelsAre] = "tree"
    one_answer: ClassVar[None] = None
    parts: ClassVar[ExampleParts] = "none"
    limit: ClassVar[int] = ROW_LIMIT
    overlap: ClassVar[int] = ROW_OVERLAP
    evaluates_full_length: ClassVar[bool] = True

    labels: tuple[str, ...]
    """Relations. An unlisted subtype (nmod:poss) is reduced to its universal part (nmod)."""

    words: int = 128
    """Number of words per sentence, from the first, that are parsed and scored (the paper's Appendix A). Rows
    are further truncated to ``limit`` subwords in training, and to the encoder's longest text in
    evaluation."""

    arc_dim: int = 512
    """Width of the dependent and head representations for arcs (the paper's released code)."""

    relation_dim: int = 128
    """Width of the dependent and head representations for relations (the paper's released code)."""

    dropout: float = 0.33
    """Dropout rate of these representations, with one mask per row (Dozat & Manning, Table 1)."""

    def __post_init__(self) -> None:
        """Raise ConfigError for an inventory without root."""
        if ROOT not in self.labels:
            raise ConfigError(f"{self.name}: the relations lack {ROOT!r}, which each tree has. Add it.")

    def encode(
        self,
        examples: Sequence[Sentence],
        tokenizer: Tokenizer,
        *,
        limit: int = ROW_LIMIT,
        overlap: int = ROW_OVERLAP,
    ) -> list[EncodedRow]:
        """Encode each sentence as one row: its first ``words`` words that start within ``limit`` subwords.

        ``overlap`` is unused. Raises DataError for a relation outside of the inventory and for heads that are
        not a tree.
        """
        del overlap
        if limit <= SPECIAL:
            raise ValueError(
                f"rows of {limit} subwords have no room for words: use a limit of at least {SPECIAL + 1}."
            )
        ids = label_ids(self.labels)
        splits = split_words([example.words for example in examples], tokenizer)
        labels_by_sentence = [_labels(example, ids) for example in examples]
        return [
            _row(index, split, labels, tokenizer, max_words=self.words, max_subwords=limit - SPECIAL)
            for index, (split, labels) in enumerate(zip(splits, labels_by_sentence, strict=True))
            if split.words
        ]

    def head(self, source: str | Path, *, seed: int | None, attention: str = "sdpa") -> Model:
        """Load an encoder with the biaffine head.

        New weights depend only on the seed.
        """
        from isogloss.encoders.loading import load_with_own_head
        from isogloss.features.parsing.dependency_trees import BiaffineParser

        def new_head(dim: int) -> BiaffineParser:
            sizes = {"arc_dim": self.arc_dim, "relation_dim": self.relation_dim}
            return BiaffineParser(dim, len(self.labels), dropout=self.dropout, **sizes)

        return load_with_own_head(source, new_head, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model: Model, batch: Batch) -> Tensor:
        """Return [label candidate 2]: the score of each arc, and the id of its best relation.

        Candidate 0 is the root, candidate n the n-th word of the row; impossible arcs have the score -inf.
        Only arcs from the root have the relation root, and they have no other relation.
        """
        import torch

        words, indices = _words(model, batch)
        root = self.labels.index(ROOT)
        relations: Tensor = model.head.relations(words)
        relations[:, :, root, 1:] = -torch.inf
        best_relations = relations.argmax(dim=2)
        best_relations[:, :, 0] = root
        return torch.stack([_arcs(model, batch, words, indices), best_relations[indices].float()], dim=-1)

    def loss(self, model: Model, batch: Batch) -> Tensor:
        """Return the mean cross entropy of heads plus relations, over words with heads in the row."""
        from torch.nn.functional import cross_entropy

        words, indices = _words(model, batch)
        inside = batch.heads != HEAD_OUTSIDE
        arcs = _arcs(model, batch, words, indices)
        relations = model.head.relations_at(words, indices, batch.heads.clamp(min=0)).float()
        gold = batch.gold.masked_fill(~inside, HEAD_OUTSIDE)
        head_loss = cross_entropy(arcs, batch.heads, ignore_index=HEAD_OUTSIDE, reduction="sum")
        relation_loss = cross_entropy(relations, gold, ignore_index=HEAD_OUTSIDE, reduction="sum")
        return (head_loss + relation_loss) / inside.sum().clamp(min=1)

    def decode(
        self, examples: Sequence[Sentence], rows: Sequence[EncodedRow], scores: Sequence[Tensor]
    ) -> list[Tree]:
        """Return the best tree of each sentence, attaching truncated words to the preceding word."""
        nonempty = [index for index, example in enumerate(examples) if example.words]
        if sorted(row.example for row in rows) != nonempty or len(rows) != len(scores):
            raise ValueError(
                f"{len(rows)} rows for {len(nonempty)} sentences: decode all rows together, each once."
            )
        trees = {row.example: self._tree(row_scores) for row, row_scores in zip(rows, scores, strict=True)}
        empty_tree = Tree((), ())
        return [
            _attach_remaining_words(trees.get(index, empty_tree), len(example.words))
            for index, example in enumerate(examples)
        ]

    def gold(self, examples: Sequence[Sentence]) -> list[Tree]:
        """Return each sentence's tree and tags, with empty trees for unlabelled sentences."""
        return [_gold_tree(example) for example in examples]

    def score(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> float:
        """Return LAS over the first ``words`` words of each sentence, without PUNCT and SYM."""
        _, las = attachment_contributions(gold, predicted, word_limit=self.words)
        return total(las)

    def contributions(self, gold: Sequence[Tree], predicted: Sequence[Tree]) -> ByMeasure:
        """Return each sentence's contributions: LAS and UAS of the first words, then CoNLL 2018's measures.

        The former are computed without and with PUNCT and SYM, the latter over all words of a sentence.
        Subtypes are ignored.
        """
        uas, las = attachment_contributions(gold, predicted, word_limit=self.words)
        uas_together, las_together = attachment_contributions(
            gold, predicted, word_limit=self.words, unscored_tags=()
        )
        conll_uas, conll_las = attachment_contributions(gold, predicted, unscored_tags=())
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
        """Return the score of chains, which attach each word to a neighbour by the most frequent relation.

        The direction that is better on the training examples is used. The relation is never punct, which is
        not scored.
        """
        train = self.gold(train_examples)
        test = self.gold(test_examples)
        relations = (universal(relation) for tree in train for relation in tree.relations)
        relation = most_frequent((name for name in relations if name not in (ROOT, "punct")), self.labels)
        chains = [[_chain(tree, relation, step) for tree in train] for step in (-1, 1)]
        preceding, following = (self.score(train, chain) for chain in chains)
        return self.score(
            test, [_chain(tree, relation, -1 if preceding >= following else 1) for tree in test]
        )

    def _tree(self, scores: Tensor) -> Tree:
        """Decode the best tree from the scores [word candidate 2] of one row."""
        import torch

        from isogloss.features.parsing.dependency_trees import best_tree

        count = len(scores)
        heads = best_tree(scores[:, : count + 1, 0].numpy())
        relations = scores[torch.arange(count), heads, 1].int().tolist()
        return Tree(tuple(heads), tuple([self.labels[relation] for relation in relations]))


def _gold_tree(example: Sentence) -> Tree:
    """Return a sentence's tree with its tags, which decide the scored words.

    Unlabelled sentences have an empty tree.
    """
    if isinstance(example, ParsedSentence) and (example.heads or example.relations):
        return Tree(example.heads, example.relations, example.tags)
    return Tree((), ())


def _row(
    example: int,
    split: SplitWords,
    labels: tuple[tuple[int, ...], tuple[int, ...]],
    tokenizer: Tokenizer,
    *,
    max_words: int,
    max_subwords: int,
) -> EncodedRow:
    """Encode a truncated sentence with its heads and relation ids."""
    word_starts = split.first()
    stop = min(
        [max_subwords, *word_starts[max_words : max_words + 1]]
    )  # The first truncated word starts here.
    positions = [1 + index for index in scored_subwords(split, tokenizer) if index < stop]
    opening, closing = special_subwords(tokenizer)
    heads, gold = (labels_of_words[: len(positions)] for labels_of_words in labels)
    return EncodedRow(
        example=example,
        subwords=(opening, *split.subwords[:stop], closing),
        positions=tuple(positions),
        words=range(len(positions)),
        gold=gold,
        heads=tuple(head if head <= len(positions) else HEAD_OUTSIDE for head in heads),
    )


def _labels(example: Sentence, ids: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return heads and relation ids of a sentence, or empty ones without labels.

    Raises DataError unless they form a tree.
    """
    from isogloss.features.parsing.dependency_trees import is_tree

    tree = _gold_tree(example)
    if not tree.heads and not tree.relations:
        return (), ()
    lengths = {len(example.words), len(tree.heads), len(tree.relations), len(tree.tags or example.words)}
    if len(lengths) > 1:
        raise DataError(
            f"example {example.id!r}: {len(tree.heads)} heads, {len(tree.relations)} relations and "
            f"{len(tree.tags)} tags for {len(example.words)} words. Give one of each for every word."
        )
    if not is_tree(tree.heads):
        raise DataError(
            f"example {example.id!r}: the heads {list(tree.heads)} are not a tree: one word must have head "
            f"0, and all others must lead to it. Correct the heads, or remove the sentence."
        )
    return tree.heads, tuple(
        _relation_id(relation, ids, example, position)
        for position, relation in enumerate(tree.relations, start=1)
    )


def _relation_id(relation: str, ids: Mapping[str, int], example: Sentence, position: int) -> int:
    name = relation if relation in ids else universal(relation)
    if name in ids:
        return ids[name]
    advice = did_you_mean(name, ids)
    if name in VERSION_1:
        advice = (
            f" It is a relation of Universal Dependencies 1; version 2 has {VERSION_1[name]!r}. Use "
            f"a later release of this treebank."
        )
    raise DataError(
        f"{_word_location(example, position)}: parsing has no relation {name!r}.{advice} "
        f"Allowed: {', '.join(ids)}."
    )


def _word_location(example: Sentence, position: int) -> str:
    """Return file and line of a word (counted from 1), or its position in an example without a file."""
    if not isinstance(example, ParsedSentence) or not example.where:
        return f"example {example.id!r}, word {position}"
    file, _, start_line = example.where.rpartition(":")
    is_word = (line.partition("\t")[0].isdecimal() for line in example.lines)
    words = [index for index, matches in enumerate(is_word) if matches]
    return f"{file}:{int(start_line) + words[position - 1]}"


def _words(model: Model, batch: Batch) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Return word states [batch word dim], and row and word index of each scored position."""
    import torch

    states = forward(model.base_model, batch).last_hidden_state
    counts = torch.bincount(batch.rows, minlength=len(states))
    offsets = counts.cumsum(dim=0) - counts
    word_indices = torch.arange(len(batch.rows), device=states.device) - offsets[batch.rows]
    words = states.new_zeros(len(states), int(counts.max()), states.size(-1))
    words[batch.rows, word_indices] = states[batch.rows, batch.columns]
    return words, (batch.rows, word_indices)


def _arcs(model: Model, batch: Batch, words: Tensor, indices: tuple[Tensor, Tensor]) -> Tensor:
    """Return arc scores [label candidate], -inf for candidates outside of the row and for the word itself."""
    import torch

    scores: Tensor = model.head.arcs(words)[indices].float()
    candidates = torch.arange(scores.size(1), device=scores.device)
    counts = torch.bincount(batch.rows)[batch.rows]
    possible = (candidates <= counts[:, None]) & (candidates != indices[1][:, None] + 1)
    return scores.masked_fill(~possible, -torch.inf)


def _attach_remaining_words(tree: Tree, length: int) -> Tree:
    new_heads = range(len(tree.heads), length)
    return Tree((*tree.heads, *new_heads), (*tree.relations, *(UNSPECIFIED for _ in new_heads)))


def _chain(tree: Tree, relation: str, step: int) -> Tree:
    """Attach each word of a sentence to the word at distance ``step``, or else to the root."""
    length = len(tree.heads)
    heads = [word + step if 0 < word + step <= length else 0 for word in range(1, length + 1)]
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
"""Dependency parsing with the 37 relations of Universal Dependencies 2, scored by LAS."""
