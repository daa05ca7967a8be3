"""Dependency trees: scores of arcs and relations, and the best tree with exactly one child of the root.

Scores: Dozat & Manning (2017), "Deep Biaffine Attention for Neural Dependency Parsing". Separate layers
represent each word as a dependent and as a head; two biaffine maps score arcs and relations. The root is
a learned state before the words, so that its arcs are scored, learned and labelled as all others.

Decoding: Chu & Liu (1965) and Edmonds (1967): each word selects its best head; while the selection has a
cycle, contract it to one node and select again. Stanojević & Cohen (2021), "A Root of a Problem": subtracting
from all root arcs more than the scores of two trees can differ gives the best tree with a single root arc.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
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


ROOT = 0


def best_tree(scores: np.ndarray) -> list[int]:
    """Return each word's head in the best single-root tree: a 1-based word number, or 0 for the root.

    ``scores`` are [word candidate], with the root as candidate 0. Arcs of -inf are used only if every tree
    needs some. Ties go to the first head. ValueError for other shapes, NaN and +inf.
    """
    if scores.ndim != 2 or scores.shape[1] != len(scores) + 1:
        raise ValueError(
            f"arc scores of shape {list(scores.shape)}: expected [word candidate], with one candidate more "
            f"than words, the root."
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
    in_range = all(0 <= head <= len(heads) for head in heads)
    return in_range and list(heads).count(ROOT) == 1 and not _cycle([ROOT, *heads])


def _finite(scores: np.ndarray) -> np.ndarray:
    """Exclude self-loops, and replace -inf by scores below those of any tree without such arcs."""
    words = np.arange(len(scores))
    scores = scores.copy()
    scores[words, words + 1] = -np.inf
    excluded = np.isneginf(scores)
    allowed = np.where(excluded, 0.0, scores)
    scores[excluded] = allowed.min() - _largest_difference(allowed)
    scores[words, words + 1] = -np.inf
    return scores


def _largest_difference(scores: np.ndarray) -> float:
    """Return an upper bound on the difference of two trees' scores."""
    finite = scores[np.isfinite(scores)]
    return 1.0 + len(scores) * float(finite.max() - finite.min())


def _best_heads(scores: np.ndarray) -> np.ndarray:
    """Return the heads of all nodes in the best tree rooted in node 0; ``scores`` are [node head]."""
    contracted: list[_Contraction] = []
    while True:
        heads: np.ndarray = scores.argmax(axis=1)
        heads[ROOT] = ROOT
        cycle = _cycle(heads.tolist())
        if not cycle:
            break
        step, scores = _contract(scores, heads, np.array(cycle))
        contracted.append(step)
    for step in reversed(contracted):
        heads = step.expanded(heads)
    return heads


@dataclass(frozen=True)
class _Contraction:
    """A cycle contracted to one node, numbered after all other nodes."""

    heads: np.ndarray
    """The selection that contains the cycle."""
    others: np.ndarray
    entered: np.ndarray
    """For each other node, the node of the cycle at which an arc from it enters best."""
    through: np.ndarray
    """For each other node, the node of the cycle that is its best head."""

    def expanded(self, chosen: np.ndarray) -> np.ndarray:
        """Return the heads of all nodes, given those of the contracted graph."""
        below_cycle = chosen[:-1] == len(self.others)
        heads = self.heads.copy()
        heads[self.others] = np.where(below_cycle, self.through, self.others[chosen[:-1] - below_cycle])
        heads[self.entered[chosen[-1]]] = self.others[chosen[-1]]
        return heads


def _contract(scores: np.ndarray, heads: np.ndarray, cycle: np.ndarray) -> tuple[_Contraction, np.ndarray]:
    """Contract a cycle to one node; return how, and the scores of the smaller graph."""
    is_other = np.ones(len(scores), dtype=bool)
    is_other[cycle] = False
    others = is_other.nonzero()[0]
    from_others = scores.take(others, axis=1)
    # Entering the cycle at a node gains the new arc and loses the node's own arc in the cycle.
    gains = from_others.take(cycle, axis=0) - scores[cycle, heads[cycle]][:, None]
    arcs_out = scores.take(others, axis=0).take(cycle, axis=1)
    smaller = np.empty((len(others) + 1,) * 2)
    smaller[:-1, :-1] = from_others.take(others, axis=0)
    smaller[:-1, -1] = arcs_out.max(axis=1)
    smaller[-1, :-1] = gains.max(axis=0)
    smaller[-1, -1] = -np.inf
    entered, through = cycle[gains.argmax(axis=0)], cycle[arcs_out.argmax(axis=1)]
    return _Contraction(heads, others, entered, through), smaller


def _cycle(heads: Sequence[int]) -> list[int]:
    """Return the nodes of a cycle in ascending order, if any; node 0 is the root."""
    walks = [0] * len(heads)  # the walk that reached a node first; 0: none yet
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
