"""Eq. 2: exactly Eq. 1 is added to the loss of the task."""

from dataclasses import replace

import pytest
import torch

from aligned import Slowly, load_in_float64, translations
from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import content, derive
from isogloss.data.examples import Translation
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.term import AlignmentTerm, sampled_rows
from isogloss.methods.plain import FewShot, SourceOnly
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training.fine_tuning import with_auxiliary
from isogloss.training.memory import Load
from trained import equal


@pytest.fixture
def make(make_setting, tmp_path):
    def setting(auxiliary=None, **options):
        result = make_setting(("en",), ("xx",), folder=tmp_path / str(auxiliary), **options)
        return replace(result, auxiliary=auxiliary, bitext={"en-xx": translations(30)})

    return setting


@pytest.mark.nightly
@pytest.mark.slow
def test_a_term_of_hardly_any_weight_leaves_the_dropout_of_the_task_as_it_is(make):
    """The second term draws its random numbers after the first."""
    plain_training = SourceOnly().train(make())
    training = SourceOnly().train(make(AlignmentTerm(alpha=1e-30, pairs=4)))
    for name, weight in each(plain_training.model.named_parameters()):
        torch.testing.assert_close(training.model.get_parameter(name), weight, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "stay"),
    [
        ({"weighs": "both"}, 0.3),
        ({"weighs": "pull"}, 1.0),
        ({"stay": 1.0}, 1.0),
        ({"stay": 0.7}, 0.7),
        ({"stay": 0.0}, 0.0),
    ],
)
@pytest.mark.parametrize("form", ["sum", "mean"])
def test_equation_2_adds_equation_1_to_the_loss_of_the_task(make, form, fields, stay, bert_folder):
    setting = make()
    task = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    model = task.head(bert_folder, seed=1, attention="eager")
    auxiliary = AlignmentTerm(alpha=0.3, form=form, pairs=5, **fields)
    term = auxiliary.prepare(setting, model, tokenizer, 3)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.05)
    rows = task.encode(setting.train("en")[:6], tokenizer)
    own_part = [collate(rows, padding=tokenizer.pad_token_id)] * 3
    batches, loss = with_auxiliary(own_part, task.loss, term)
    drawn_sampled_rows = sampled_rows(30, 5, step=2, seed=derive(setting.seed, "replay"))
    pairs = [setting.bitext["en-xx"][row] for row in drawn_sampled_rows]
    slow = load_in_float64(bert_folder)
    slow.load_state_dict(
        {k: v.double() for k, v in model.state_dict().items() if k in slow.state_dict()}, strict=False
    )
    align = 0.3 * Slowly(bert_folder).equation_1(
        slow, load_in_float64(bert_folder), pairs, form=form, stay=stay / 0.3
    )
    expected = task.loss(model, own_part[0]).double() + align
    torch.testing.assert_close(loss(model, batches[2]).double(), expected, rtol=1e-4, atol=1e-6)


def test_the_weight_of_holding_is_its_own_and_stands_once(make, bert_folder):
    """Released: .01 of pulling and 1 of holding; without a weight of either nothing is added."""
    assert content(AlignmentTerm()).keys().isdisjoint({"stay"})
    assert AlignmentTerm(alpha=0.01, stay=1.0).anchor == AlignmentTerm(weighs="pull").anchor == 1.0
    model = TASKS["upos"].head(bert_folder, seed=1)
    tokenizer = load_tokenizer(bert_folder)
    assert AlignmentTerm(alpha=0.0, stay=0.0).prepare(make(), model, tokenizer, 3) is None
    assert AlignmentTerm(alpha=0.0, stay=0.5).prepare(make(), model, tokenizer, 3) is not None
    assert AlignmentTerm(stay=0.0).cost(Load(rows=4, length=64)).copies == 0
    message = r'= "pull".*1.*0\.5'
    with pytest.raises(ConfigError, match=message):
        AlignmentTerm(weighs="pull", stay=0.5)


def test_pairs_are_drawn_at_random_and_from_seed_and_step_alone():
    steps = [sampled_rows(100, 16, step=step, seed=0) for step in range(50)]
    assert {len(set(step)) for step in steps} == {16}
    assert [sampled_rows(100, 16, step=step, seed=0) for step in (49, 0)] == [steps[49], steps[0]]
    assert sampled_rows(100, 16, step=0, seed=1) != steps[0]
    assert sorted(sampled_rows(5, 16, step=0, seed=0)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("task", ["upos", "nli", "parsing", "qa"])
def test_it_composes_with_every_task(task, make):
    from isogloss.features.built_in_languages import examples

    corpus = {"upos": "ud", "nli": "xnli", "parsing": "ud", "qa": "squad"}[task]
    items = [example for example, _ in zip(examples(corpus, "qaa", "train"), range(16), strict=False)]
    setting = make(AlignmentTerm(alpha=0.1, pairs=4), limit=64, epochs=1)
    training = SourceOnly().train(
        replace(setting, task=TASKS[task], train=lambda _: items, dev=lambda _: items[:4])
    )
    losses = [row["loss"] for row in training.rows if "loss" in row]
    assert losses
    assert training.rows[-1]["translations"] == 30


@pytest.mark.nightly
@pytest.mark.slow
def test_states_before_are_those_of_the_original_encoder_also_where_an_adjusted_one_is_trained(
    make, bert_folder, tmp_path
):
    """If the trained encoder is the original one, the loss is the same."""
    adjusted_model = load_whole(bert_folder)
    with torch.no_grad():
        for weight in adjusted_model.parameters():
            weight.mul_(1.05)
    save_model(adjusted_model, load_tokenizer(bert_folder), tmp_path / "adjusted")

    def train_from(start, reference):
        auxiliary = AlignmentTerm(alpha=0.5, pairs=4, reference=reference)
        setting = replace(make(auxiliary, epochs=1), start=str(start), original=str(bert_folder))
        return SourceOnly().train(replace(setting, folder=tmp_path / f"{start.name} {reference}"))

    assert equal(train_from(bert_folder, None), train_from(bert_folder, "original"))
    assert not equal(train_from(tmp_path / "adjusted", None), train_from(tmp_path / "adjusted", "original"))


@pytest.mark.nightly
@pytest.mark.slow
def test_an_original_encoder_holds_the_states_of_an_adjusted_one_to_its_own(make, bert_folder):
    """With only the weight of the second term, f of a model in the place of f⁰ costs nothing."""
    setting = make()
    tokenizer = load_tokenizer(bert_folder)
    model = TASKS["upos"].head(bert_folder, seed=1, attention="eager").eval()
    with torch.no_grad():
        for weight in model.base_model.parameters():
            weight.mul_(1.05)
    setting = replace(setting, original=str(bert_folder))
    auxiliary = AlignmentTerm(alpha=0.0, weighs="pull", pairs=5)
    own_part, original = (
        replace(auxiliary, reference=item).prepare(setting, model, tokenizer, 3)
        for item in (None, "original")
    )
    with torch.no_grad():
        assert (
            float(own_part.loss(own_part.batches[0]))
            < 1e-10
            < 1e-4
            < float(original.loss(original.batches[0]))
        )


def test_an_original_that_is_not_named_is_refused(make):
    setting = make(AlignmentTerm(reference="original"), epochs=1)
    with pytest.raises(ConfigError, match="encoder"):
        SourceOnly().train(setting)


def test_without_sentence_pairs_it_is_refused(make):
    setting = replace(make(AlignmentTerm()), bitext={})
    with pytest.raises(DataError, match=r"sentence.*draw.*bitext"):
        SourceOnly().train(setting)


def test_pairs_left_out_are_a_warning(make):
    long_translation = Translation(id="l", first="cat " * 70, second="tac", links=())
    setting = replace(make(AlignmentTerm(), epochs=1), bitext={"en-xx": [*translations(3), long_translation]})
    assert any("1 of 4 sentence pairs" in warning for warning in SourceOnly().train(setting).warnings)


def test_without_shots_nothing_changes(make):
    none = FewShot(shots=0).train(make())
    assert equal(FewShot(shots=0).train(make(AlignmentTerm(alpha=1.0))), none)
