"""Dependency trees: scores of arcs and relations, and the best tree with exactly one child of the root.

Scores: Dozat & Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing". Separate layers
represent each word as a dependent and as a head; two biaffine maps score arcs and relations. The root is a
learned state before the words, so its arcs are scored, learned and labelled like all others.

Decoding: Chu & Liu (1965) and Edmonds (1967): each word selects its best head. While the selection has a
cycle, contract it to one node and select again. Stanojević & Cohen (2021), "A Root of a Problem": subtracting
from all root arcs more than the maximum difference of two trees' scores gives the best tree with a single
root arc.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

INITIAL_STD = 0.02
"""Standard deviation of new weights, until a caller draws different ones."""


class BiaffineParser(nn.Module):
    """Scores of arcs and relations between words. Candidates for a word's head are the root and all words."""

    def __init__(self, dim: int, relations: int, *, arc_dim: int, relation_dim: int, dropout: float) -> None:
        super().__init__()
        self.root = nn.Parameter(torch.empty(1, dim))
        self.arc_dependent = Perceptron(dim, arc_dim, dropout)
        self.arc_head = Perceptron(dim, arc_dim, dropout)
        self.relation_dependent = Perceptron(dim, relation_dim, dropout)
        self.relation_head = Perceptron(dim, relation_dim, dropout)
        # A bias that depends only on the dependent is the same for all its heads, so arcs do not need it.
        self.arc = nn.Parameter(torch.empty(arc_dim + 1, arc_dim))
        self.relation = nn.Parameter(torch.empty(relations, relation_dim + 1, relation_dim + 1))
        for weight in (self.root, self.arc, self.relation):
            nn.init.normal_(weight, std=INITIAL_STD)

    def arcs(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word candidate"]:
        """Score every candidate as the head of every word. Candidate 0 is the root, n the n-th word."""
        dependents = _with_one(self.arc_dependent(words))
        heads: Tensor = self.arc_head(self._candidates(words))
        return dependents @ self.arc @ heads.transpose(1, 2)

    def relations(
        self, words: Float[Tensor, "batch word dim"]
    ) -> Float[Tensor, "batch word relation candidate"]:
        """Score every relation between every word and every candidate."""
        dependents, heads = self._relation_sides(words)
        projections = torch.einsum("bwx,rxy->bwry", dependents, self.relation)
        return torch.einsum("bwry,bcy->bwrc", projections, heads)

    def relations_at(
        self,
        words: Float[Tensor, "batch word dim"],
        positions: tuple[Integer[Tensor, "arc"], Integer[Tensor, "arc"]],
        heads: Integer[Tensor, "arc"],
    ) -> Float[Tensor, "arc relation"]:
        """Score every relation between words at positions (row, word) and one candidate for each."""
        dependents, candidates = self._relation_sides(words)
        projections = torch.einsum("ax,rxy->ary", dependents[positions], self.relation)
        return torch.einsum("ary,ay->ar", projections, candidates[positions[0], heads])

    def _relation_sides(self, words: Tensor) -> tuple[Tensor, Tensor]:
        candidates = self._candidates(words)
        return _with_one(self.relation_dependent(words)), _with_one(self.relation_head(candidates))

    def _candidates(self, words: Tensor) -> Tensor:
        root = self.root.to(words.dtype).expand(len(words), 1, -1)
        return torch.cat([root, words], dim=1)


class Perceptron(nn.Module):
    """Representation of words as dependents or as heads: a layer, ELU, and dropout shared by a row."""

    def __init__(self, dim: int, width: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words: Float[Tensor, "batch word dim"]) -> Float[Tensor, "batch word out"]:
        """Return the representation of each word.

        One dropout mask drops the same features of all words of a row, as in the paper.
        """
        states = nn.functional.elu(self.layer(words))
        mask: Tensor = self.dropout(torch.ones_like(states[:, :1]))
        return states * mask


def _with_one(states: Tensor) -> Tensor:
    """Add a feature that is always 1, which turns a bilinear map into an affine one."""
    return torch.cat([states, torch.ones_like(states[..., :1])], dim=-1)


ROOT = 0


def best_tree(scores: np.ndarray) -> list[int]:
    """Return each word's head in the best single-root tree: a 1-based word number, or 0 for the root.

    ``scores`` are [word candidate], with the root as candidate 0. Arcs of -inf are used only if every tree
    needs some. Raises ValueError for other shapes, NaN and +inf.
    """
    if scores.ndim != 2 or scores.shape[1] != len(scores) + 1:
        raise ValueError(
            f"arc scores of shape {list(scores.shape)}: expected [word candidate], with one more candidate "
            f"(the root) than words."
        )
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise ValueError(
            "arc scores contain NaN or +inf, so no tree is the best. Use a model whose training converged."
        )
    if not len(scores):
        return []
    scores = _finite(np.asarray(scores, dtype=np.float64))
    greedy = scores.argmax(axis=1)
    if is_tree(greedy.tolist()):
        return [int(head) for head in greedy]
    nodes = np.vstack([np.full(scores.shape[1], -np.inf), scores])
    nodes[1:, ROOT] -= _largest_difference(scores)
    return [int(head) for head in _best_heads(nodes)[1:]]


def is_tree(heads: Sequence[int]) -> bool:
    """Return whether heads (1-based word numbers, 0 for the root) form one tree with a single root."""
    are_in_range = all(0 <= head <= len(heads) for head in heads)
    return are_in_range and list(heads).count(ROOT) == 1 and not _cycle([ROOT, *heads])


def _finite(scores: np.ndarray) -> np.ndarray:
    """Exclude self-loops, and replace -inf by scores that are worse than in any tree without such arcs."""
    words = np.arange(len(scores))
    scores = scores.copy()
    scores[words, words + 1] = -np.inf
    is_excluded = np.isneginf(scores)
    allowed_scores = np.where(is_excluded, 0.0, scores)
    scores[is_excluded] = allowed_scores.min() - _largest_difference(allowed_scores)
    scores[words, words + 1] = -np.inf
    return scores


def _largest_difference(scores: np.ndarray) -> float:
    """Return an upper bound on the difference of two trees' scores."""
    finite = scores[np.isfinite(scores)]
    return 1.0 + len(scores) * float(finite.max() - finite.min())


def _best_heads(scores: np.ndarray) -> np.ndarray:
    """Return the heads of all nodes in the best tree rooted in node 0, from scores [node head]."""
    contractions: list[_Contraction] = []
    while True:
        heads: np.ndarray = scores.argmax(axis=1)
        heads[ROOT] = ROOT
        cycle = _cycle(heads.tolist())
        if not cycle:
            break
        step, scores = _contract(scores, heads, np.array(cycle))
        contractions.append(step)
    for step in reversed(contractions):
        heads = step.expand(heads)
    return heads


@dataclass(frozen=True)
class _Contraction:
    """A cycle contracted to one node, numbered after all other nodes."""

    heads: np.ndarray
    """Selection that contains the cycle."""
    others: np.ndarray
    entered: np.ndarray
    """For each other node, the node of the cycle at which an arc from it enters best."""
    through: np.ndarray
    """For each other node, the node of the cycle that is its best head."""

    def expand(self, small_heads: np.ndarray) -> np.ndarray:
        """Return the heads of all nodes, given the heads of the contracted graph."""
        below_cycle = small_heads[:-1] == len(self.others)
        heads = self.heads.copy()
        heads[self.others] = np.where(below_cycle, self.through, self.others[small_heads[:-1] - below_cycle])
        heads[self.entered[small_heads[-1]]] = self.others[small_heads[-1]]
        return heads


def _contract(scores: np.ndarray, heads: np.ndarray, cycle: np.ndarray) -> tuple[_Contraction, np.ndarray]:
    """Contract a cycle to one node, and return the contraction and the scores of the smaller graph."""
    is_other = np.ones(len(scores), dtype=bool)
    is_other[cycle] = False
    other_nodes = is_other.nonzero()[0]
    from_others = scores.take(other_nodes, axis=1)
    # Entering the cycle at a node gains the new arc and loses the node's own arc in the cycle.
    gains = from_others.take(cycle, axis=0) - scores[cycle, heads[cycle]][:, None]
    arcs_out = scores.take(other_nodes, axis=0).take(cycle, axis=1)
    smaller = np.empty((len(other_nodes) + 1,) * 2)
    smaller[:-1, :-1] = from_others.take(other_nodes, axis=0)
    smaller[:-1, -1] = arcs_out.max(axis=1)
    smaller[-1, :-1] = gains.max(axis=0)
    smaller[-1, -1] = -np.inf
    contraction = _Contraction(
        heads=heads,
        others=other_nodes,
        entered=cycle[gains.argmax(axis=0)],
        through=cycle[arcs_out.argmax(axis=1)],
    )
    return contraction, smaller


def _cycle(heads: Sequence[int]) -> list[int]:
    """Return the nodes of a cycle in ascending order, or an empty list. Node 0 is the root."""
    walks = [0] * len(heads)  # Start of the walk that reached a node first, or 0.
    for start in range(1, len(heads)):
        node = start
        while node != ROOT and not walks[node]:
            walks[node] = start
            node = heads[node]
        if node != ROOT and walks[node] == start:
            cycle = [node]
            while heads[cycle[-1]] != node:
                cycle.append(heads[cycle[-1]])
            return sorted(cycle)
    return []
