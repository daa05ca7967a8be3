"""Deep biaffine attention: scores of every word as the head of every other, and of the relations.

Dozat & Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing". Separate layers
represent each word as a dependent and as a head; two biaffine maps score arcs and relations. The root is
a learned state before the words, so that its arcs are scored, learned and labelled as all others.
"""

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

INITIAL_STD = 0.02
"""Standard deviation of new weights, until a caller draws its own."""


class BiaffineParser(nn.Module):
    """Scores of arcs and relations between words; a candidate for a word's head is the root or any word."""

    def __init__(self, dim: int, relations: int, *, arc_dim: int, relation_dim: int, dropout: float) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.empty(1, dim))
        self.arc_dependent = Perceptron(dim, arc_dim, dropout)
        self.arc_head = Perceptron(dim, arc_dim, dropout)
        self.relation_dependent = Perceptron(dim, relation_dim, dropout)
        self.relation_head = Perceptron(dim, relation_dim, dropout)
        # What only depends on the dependent is the same for all its heads: arcs need no bias on that side.
        self.arc = nn.Parameter(torch.empty(arc_dim + 1, arc_dim))
        self.relation = nn.Parameter(torch.empty(relations, relation_dim + 1, relation_dim + 1))
        for weight in (self.root, self.arc, self.relation):
            nn.init.normal_(weight, std=INITIAL_STD)

    def arcs(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word candidate"]:
        """Score every candidate as the head of every word; candidate 0 is the root, n the n-th word."""
        dependents = _with_one(self.arc_dependent(words))
        heads: Tensor = self.arc_head(self._candidates(words))
        return dependents @ self.arc @ heads.transpose(1, 2)

    def relations(
        self, words: Float[Tensor, "batch word dim"]
    ) -> Float[Tensor, "batch word relation candidate"]:
        """Score every relation between every word and every candidate."""
        dependents, heads = self._relation_sides(words)
        reached = torch.einsum("bwx,rxy->bwry", dependents, self.relation)
        return torch.einsum("bwry,bcy->bwrc", reached, heads)

    def relations_at(
        self,
        words: Float[Tensor, "batch word dim"],
        positions: tuple[Integer[Tensor, "arc"], Integer[Tensor, "arc"]],
        heads: Integer[Tensor, "arc"],
    ) -> Float[Tensor, "arc relation"]:
        """Score every relation between words at positions (row, word) and one candidate for each."""
        dependents, candidates = self._relation_sides(words)
        reached = torch.einsum("ax,rxy->ary", dependents[positions], self.relation)
        return torch.einsum("ary,ay->ar", reached, candidates[positions[0], heads])

    def _relation_sides(self, words: Tensor) -> tuple[Tensor, Tensor]:
        candidates = self._candidates(words)
        return _with_one(self.relation_dependent(words)), _with_one(self.relation_head(candidates))

    def _candidates(self, words: Tensor) -> Tensor:
        root = self.root.to(words.dtype).expand(len(words), 1, -1)
        return torch.cat([root, words], dim=1)


class Perceptron(nn.Module):
    """The representation of words as dependents or as heads: a layer, ELU, and dropout shared by a row."""

    def __init__(self, dim: int, out: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word out"]:
        """Read each word; one mask drops the same features of all words of a row, as in the paper."""
        states = nn.functional.elu(self.layer(words))
        mask: Tensor = self.dropout(torch.ones_like(states[:, :1]))
        return states * mask


def _with_one(states: Tensor) -> Tensor:
    """Add a feature that is always 1, so that a bilinear map is an affine one."""
    return torch.cat([states, torch.ones_like(states[..., :1])], dim=-1)
