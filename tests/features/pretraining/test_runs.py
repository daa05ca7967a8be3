from dataclasses import dataclass
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.identity import identity
from isogloss.features.pretraining.run import Pretrain
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import needs, order_runs


@dataclass(frozen=True)
class Method:
    name: ClassVar[str] = "method"
    number: int = 0


def pretrain(seed):
    return Pretrain(text=("bible",), languages=("en",), method=Method(), seed=seed)


@st.composite
def forests(draw):
    """Runs of every kind, each drawing its needs from those before it."""
    encoders = [pretrain(seed) for seed in range(2)] + [Pretrained(source="shipped")]
    models = [
        FineTune(
            encoder=draw(st.sampled_from(encoders)),
            corpus="ud",
            task="upos",
            method=Method(index),
            source=("en",),
        )
        for index in range(draw(st.integers(1, 3)))
    ]
    measures = []
    for value in range(draw(st.integers(0, 4))):
        subjects = draw(st.lists(st.sampled_from([*encoders, *models, *measures]), min_size=1, max_size=3))
        measures.append(Measure(diagnostic=Method(value), subjects=tuple(subjects)))
    return tuple(draw(st.permutations([*measures, *models, *encoders[:2]])))


@given(forests())
def test_what_is_needed_comes_first_and_each_run_once(runs):
    ordered_runs = order_runs(runs)
    ids = [identity(run) for run in ordered_runs]
    assert len(set(ids)) == len(ids)
    assert {identity(run) for run in runs} <= set(ids)
    for place, run in enumerate(ordered_runs):
        assert all(identity(need) in ids[:place] for need in needs(run))


@given(forests())
def test_ordering_twice_changes_nothing(runs):
    ordered_runs = order_runs(runs)
    assert order_runs(tuple(ordered_runs)) == ordered_runs


def test_an_encoder_that_exists_is_no_run_to_make():
    model = FineTune(
        encoder=Pretrained(source="shipped"), corpus="ud", task="upos", method=Method(), source=("en",)
    )
    assert needs(model) == ()
    assert order_runs((model,)) == [model]


def test_equal_needs_are_one_run():
    measure, two = (Measure(diagnostic=Method(n), subjects=(pretrain(0),)) for n in (0, 1))
    assert order_runs((measure, two)) == [pretrain(0), measure, two]
