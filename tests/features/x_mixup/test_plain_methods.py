"""Source-only, target-only and bilingual are one training on different data: each is neutral to the bit."""

from dataclasses import replace

import pytest

from isogloss.core.errors import DataError
from isogloss.data.examples import shots
from isogloss.encoders.saving import save_model
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods import METHODS
from isogloss.methods.plain import Bilingual, FewShot, SourceOnly, TargetOnly, TranslateTrain
from isogloss.training.fine_tuning import Selection, fine_tune
from isogloss.training.setting import Reads
from made_up import on
from trained import equal


@pytest.fixture
def train(make_setting, tmp_path):
    """Train a method in a separate folder."""

    def run(method, source=(), target=(), *, seed=0):
        name = f"{method} {source} {target} {seed}"
        return method.train(make_setting(source, target, seed=seed, folder=tmp_path / name))

    return run


@pytest.mark.slow
def test_every_method_without_the_other_language_is_plain_fine_tuning(train, make_setting, tmp_path):
    plain_training = fine_tune(make_setting(folder=tmp_path / "plain"), on("en"))
    for method, source, target in (
        (SourceOnly(), ("en",), ()),
        (SourceOnly(), ("en",), ("de",)),
        (TargetOnly(), (), ("en",)),
        (TargetOnly(), ("de",), ("en",)),
        (Bilingual(), ("en",), ()),
        (Bilingual(), (), ("en",)),
        (TranslateTrain(), ("en",), ()),
        (XMixup(), ("en",), ()),
        (FewShot(shots=40), ("de",), ("en",)),
    ):
        training = train(method, source, target)
        assert equal(training, plain_training)
        assert training.rows == plain_training.rows


@pytest.mark.nightly
@pytest.mark.slow
def test_bilingual_is_fine_tuning_on_both(train, make_setting, tmp_path):
    trainings = fine_tune(make_setting(("en",), ("de",), folder=tmp_path / "both"), on("en", "de"))
    assert equal(train(Bilingual(), ("en",), ("de",)), trainings)
    assert not equal(train(SourceOnly(), ("en",), ("de",)), trainings)
    assert not equal(train(TargetOnly(), ("en",), ("de",)), trainings)


@pytest.mark.nightly
@pytest.mark.slow
def test_translate_train_is_fine_tuning_on_source_and_translations(train, make_setting, tmp_path):
    trainings = fine_tune(make_setting(folder=tmp_path / "both"), Reads(train=("en", "en-de"), dev=("en",)))
    assert equal(train(TranslateTrain(), ("en",), ("de",)), trainings)
    single_training = fine_tune(make_setting(folder=tmp_path / "alone"), Reads(train=("en-de",), dev=("en",)))
    assert equal(train(TranslateTrain(with_source=False), ("en",), ("de",)), single_training)


def test_translate_train_reads_no_target_labels():
    text = TranslateTrain().reads(("en", "ar"), ("de",))
    assert text == Reads(train=("en", "ar", "en-de", "ar-de"), dev=("en", "ar"))


@pytest.mark.slow
def test_few_shot_without_shots_leaves_the_model_as_it_was(make_setting, tmp_path):
    first_training = SourceOnly().train(make_setting(("en",), folder=tmp_path / "first"))
    save_model(first_training.model, first_training.tokenizer, tmp_path / "model")
    start = make_setting(("en",), ("de",), seed=1, encoder=tmp_path / "model", folder=tmp_path / "none")
    none = FewShot(shots=0).train(start)
    assert equal(none, first_training)
    assert none.warnings == ()  # Without a dev score there is no sign that nothing was learned.


@pytest.mark.slow
def test_few_shot_goes_on_from_its_start_with_the_chosen_examples_alone(make_setting, tmp_path):
    first_training = SourceOnly().train(make_setting(("en",), folder=tmp_path / "first"))
    save_model(first_training.model, first_training.tokenizer, tmp_path / "model")

    def go_on(method, name):
        setting = make_setting(("en",), ("de",), encoder=tmp_path / "model", folder=tmp_path / name)
        return method.train(setting), setting

    two, setting = go_on(FewShot(shots=2), "two")
    taken_ids = {shot.id for shot in shots(setting.train("de"), 2, seed=0)}
    chosen_training = [example for example in setting.train("de") if example.id in taken_ids]
    assert len(chosen_training) == 2
    manual_training = fine_tune(
        replace(setting, train=lambda _: chosen_training, folder=tmp_path / "hand"), on("de")
    )
    assert equal(two, manual_training)
    assert not equal(two, go_on(FewShot(shots=2, draw=1), "other")[0])


def test_few_shot_can_choose_the_epoch_without_target_labels(make_setting, tmp_path):
    training = FewShot(shots=4, dev="source").train(make_setting(("en",), ("de",), folder=tmp_path / "a"))
    assert {row["language"] for row in training.rows if "language" in row} == {"en"}


def test_few_shot_can_choose_the_epoch_by_as_many_shots_again(make_setting, tmp_path):
    setting = make_setting(("en",), ("de",), folder=tmp_path / "a")

    def unread(language):
        raise AssertionError(language)

    training = FewShot(shots=4, dev="shots").train(replace(setting, dev=unread))
    first_ids, id_lists = (
        {shot.id for shot in shots(setting.train("de"), count, seed=0)} for count in (4, 8)
    )
    shot_training = [example for example in setting.train("de") if example.id in first_ids]
    further = [example for example in setting.train("de") if example.id in id_lists - first_ids]
    read = {"train": lambda _: shot_training, "dev": lambda _: further, "folder": tmp_path / "b"}
    manual_training = fine_tune(replace(setting, **read), on("de"))
    assert len(further) == 4 and equal(training, manual_training) and training.rows == manual_training.rows
    with pytest.raises(DataError, match=r'few-shot: .*"shots".*30.*de.*40'):
        FewShot(shots=30, dev="shots").train(setting)


def test_few_shot_without_a_dev_set_keeps_the_last_epoch(make_setting, tmp_path, monkeypatch):
    assert FewShot(dev="none").reads(("en",), ("de",)) == Reads(train=("de",), examples=10)
    training = FewShot(shots=4, dev="none").train(make_setting(("en",), ("de",), folder=tmp_path / "none"))
    assert not any("score" in row for row in training.rows)
    for better in (1, -1):  # The last epoch is the best, or the first is.

        def notes(_, __, done, by=better):
            return [{"language": "de", "epoch": done, "score": by * done}]

        monkeypatch.setattr(Selection, "notes", notes)
        chosen_training = FewShot(shots=4).train(
            make_setting(("en",), ("de",), folder=tmp_path / f"{better}")
        )
        assert equal(training, chosen_training) == (better == 1)


def test_sides_say_whose_labels_are_used():
    assert {name: method.uses for name, method in METHODS.items()} == {
        "source-only": ("source",),
        "oracle-stopping": ("source", "target"),
        "target-only": ("target",),
        "bilingual": ("source", "target"),
        "few-shot": ("source", "target"),
        "translate-train": ("source", "target"),
        "consistency": ("source", "target"),
        "x-mixup": ("source", "target"),
        "given": ("source",),
        "average": ("source", "target"),
        "self-training": ("source", "target"),
        "flare": ("source", "target"),
    }
