"""The best dependency tree under given arc scores: a maximum spanning tree with one word below the root.

Chu & Liu (1965) and Edmonds (1967): let each word choose its best head; while the choices have a cycle,
shrink it to one node and choose again. Stanojević & Cohen (2021), "A Root of a Problem": taking more from
all root arcs than any tree can win elsewhere makes the best tree have a single one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

ROOT = 0


def best_tree(scores: np.ndarray) -> list[int]:
    """Return each word's head, counted from 1, 0 for the root, in the best tree with a single root.

    ``scores`` [word candidate] has the root as candidate 0 and each word at its own number. Arcs of -inf are
    used only where no tree can do without. Of equally good heads the first is taken. ValueError for other
    shapes, NaN and +inf.
    """
    _check(scores)
    if not len(scores):
        return []
    scores = _finite(np.asarray(scores, dtype=np.float64))
    greedy = scores.argmax(axis=1)
    if is_tree(greedy.tolist()):
        return [int(head) for head in greedy]
    nodes = np.vstack([np.full(scores.shape[1], -np.inf), scores])
    nodes[1:, ROOT] -= _more_than_trees_differ(scores)
    return [int(head) for head in _best_heads(nodes)[1:]]


def is_tree(heads: Sequence[int]) -> bool:
    """Tell whether heads (of words counted from 1, 0 for the root) are one tree with a single root."""
    in_range = all(0 <= head <= len(heads) for head in heads)
    return in_range and list(heads).count(ROOT) == 1 and not _cycle([ROOT, *heads])


def _check(scores: np.ndarray) -> None:
    if scores.ndim != 2 or scores.shape[1] != len(scores) + 1:
        raise ValueError(
            f"arc scores of shape {list(scores.shape)}: expected [word candidate], with one candidate more "
            f"than words, the root."
        )
    if np.isnan(scores).any() or np.isposinf(scores).any():
        raise ValueError(
            "arc scores with NaN or +inf in them: no tree is the best. Use a model whose training converged."
        )


def _finite(scores: np.ndarray) -> np.ndarray:
    """Rule out words as their own heads, and make arcs of -inf worse than any tree of other ones."""
    words = np.arange(len(scores))
    scores = scores.copy()
    scores[words, words + 1] = -np.inf
    ruled_out = np.isneginf(scores)
    known = np.where(ruled_out, 0.0, scores)
    scores[ruled_out] = known.min() - _more_than_trees_differ(known)
    scores[words, words + 1] = -np.inf
    return scores


def _more_than_trees_differ(scores: np.ndarray) -> float:
    finite = scores[np.isfinite(scores)]
    return 1.0 + len(scores) * float(finite.max() - finite.min())


def _best_heads(scores: np.ndarray) -> np.ndarray:
    """Return the heads of all nodes in the best tree below node 0; ``scores`` are [node head]."""
    shrunk: list[_Shrunk] = []
    while True:
        heads: np.ndarray = scores.argmax(axis=1)
        heads[ROOT] = ROOT
        cycle = _cycle(heads.tolist())
        if not cycle:
            break
        step, scores = _shrink(scores, heads, np.array(cycle))
        shrunk.append(step)
    for step in reversed(shrunk):
        heads = step.expanded(heads)
    return heads


@dataclass(frozen=True)
class _Shrunk:
    """A cycle that was made one node, the last one, after the other nodes in their order."""

    heads: np.ndarray
    """The choices that had the cycle in them."""
    others: np.ndarray
    entered: np.ndarray
    """For each other node, the node of the cycle that it is best the head of."""
    through: np.ndarray
    """For each other node, the node of the cycle that is best its head."""

    def expanded(self, chosen: np.ndarray) -> np.ndarray:
        """Return the heads of all nodes, given those of the other nodes and of the cycle as one."""
        below_cycle = chosen[:-1] == len(self.others)
        heads = self.heads.copy()
        heads[self.others] = np.where(below_cycle, self.through, self.others[chosen[:-1] - below_cycle])
        heads[self.entered[chosen[-1]]] = self.others[chosen[-1]]
        return heads


def _shrink(scores: np.ndarray, heads: np.ndarray, cycle: np.ndarray) -> tuple[_Shrunk, np.ndarray]:
    """Make a cycle one node; return what was done and the scores of the smaller graph."""
    others = np.setdiff1d(np.arange(len(scores)), cycle)
    # Who enters the cycle at a node wins the new arc and loses the node's own arc of the cycle.
    gains = scores[np.ix_(cycle, others)] - scores[cycle, heads[cycle]][:, None]
    arcs_out = scores[np.ix_(others, cycle)]
    smaller = np.full((len(others) + 1,) * 2, -np.inf)
    smaller[:-1, :-1] = scores[np.ix_(others, others)]
    smaller[:-1, -1] = arcs_out.max(axis=1)
    smaller[-1, :-1] = gains.max(axis=0)
    entered, through = cycle[gains.argmax(axis=0)], cycle[arcs_out.argmax(axis=1)]
    return _Shrunk(heads, others, entered, through), smaller


def _cycle(heads: Sequence[int]) -> list[int]:
    """Return the nodes of one cycle, sorted, or none; node 0 is the root."""
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
