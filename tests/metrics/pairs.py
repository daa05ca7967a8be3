"""Pairs of systems for the tests of differences."""

import numpy as np
from hypothesis import strategies as st

from isogloss.metrics.paired import Pair, System


def means(system, baseline):
    """Make a pair whose measure is a mean over examples, from values [seed example]."""
    sides = [np.atleast_2d(np.asarray(side, dtype=float)) for side in (system, baseline)]
    return Pair(*(System(side, np.ones_like(side)) for side in sides))


def drawn_means(rng, *, seeds=3, examples=200, gain=0.0):
    """Draw right and wrong answers; the system is right more often by ``gain``."""
    chances = rng.uniform(0.3, 0.7, examples)
    return means(rng.random((seeds, examples)) < chances + gain, rng.random((seeds, examples)) < chances)


@st.composite
def counted(draw, *, most_examples=7, most_seeds=3):
    """Draw a pair whose measure is a ratio of counts, as F1 is; wholes may be 0."""
    seeds, examples = draw(st.integers(1, most_seeds)), draw(st.integers(1, most_examples))
    sides = []
    for _ in range(2):
        whole = draw(st.lists(st.integers(0, 4), min_size=seeds * examples, max_size=seeds * examples))
        part = [draw(st.integers(0, one)) for one in whole]
        sides.append(System(*(np.array(one, dtype=float).reshape(seeds, examples) for one in (part, whole))))
    return Pair(*sides)
