"""Source-only, target-only and bilingual are one training on different data: each is neutral to the bit."""

from dataclasses import fields, is_dataclass

import pytest
import torch

from isogloss.methods import METHODS, PRETRAINING
from isogloss.methods.bilingual import Bilingual
from isogloss.methods.source_only import SourceOnly
from isogloss.methods.target_only import TargetOnly
from isogloss.training.supervised import fine_tune


def weights(trained):
    return dict(trained.model.named_parameters())


def equal(one, other):
    one, other = weights(one), weights(other)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def train(make_setting, tmp_path):
    """Train a method in a folder of its own."""

    def run(method, source=(), target=(), *, seed=0):
        name = f"{method.name} {source} {target} {seed}"
        return method.train(make_setting(source, target, seed=seed, folder=tmp_path / name))

    return run


def test_every_method_without_the_other_language_is_plain_fine_tuning(train, make_setting, tmp_path):
    plain = fine_tune(make_setting(folder=tmp_path / "plain"), ("en",))
    for method, source, target in (
        (SourceOnly(), ("en",), ()),
        (SourceOnly(), ("en",), ("de",)),
        (TargetOnly(), (), ("en",)),
        (TargetOnly(), ("de",), ("en",)),
        (Bilingual(), ("en",), ()),
        (Bilingual(), (), ("en",)),
    ):
        trained = train(method, source, target)
        assert equal(trained, plain)
        assert trained.rows == plain.rows


def test_bilingual_is_fine_tuning_on_both(train, make_setting, tmp_path):
    both = fine_tune(make_setting(("en",), ("de",), folder=tmp_path / "both"), ("en", "de"))
    assert equal(train(Bilingual(), ("en",), ("de",)), both)
    assert not equal(train(SourceOnly(), ("en",), ("de",)), both)
    assert not equal(train(TargetOnly(), ("en",), ("de",)), both)


def test_different_seeds_give_different_models(train):
    assert not equal(train(SourceOnly(), ("en",)), train(SourceOnly(), ("en",), seed=1))


@pytest.mark.parametrize("method", [*METHODS.values(), *PRETRAINING.values()])
def test_methods_are_frozen_named_and_their_fields_explained(method):
    assert is_dataclass(method)
    assert method.__dataclass_params__.frozen
    assert method.name == {**METHODS, **PRETRAINING}[method.name].name
    for field in fields(method):
        assert f"{field.name}:" in _source(method)


def _source(method):
    import inspect

    return inspect.getsource(method)


def test_sides_say_whose_labels_are_used():
    assert {name: method.sides for name, method in METHODS.items()} == {
        "source-only": ("source",),
        "target-only": ("target",),
        "bilingual": ("source", "target"),
    }


def test_every_method_file_is_in_the_table():
    from pathlib import Path

    import isogloss.methods as package

    files = {path.stem.replace("_", "-") for path in Path(package.__file__).parent.glob("[!_]*.py")}
    assert files == METHODS.keys() | PRETRAINING.keys()
