"""Gradient conflict: cosines, their control, and sampling during a training."""

import weakref
from itertools import combinations_with_replacement

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from each import each
from in_translation import sentences
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.run_parts import Architecture, Modules, with_fields
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.parameter_groups import ParameterGroup, parts_of
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.methods import METHODS
from isogloss.methods.plain import Bilingual, TranslateTrain
from isogloss.planning.plan import plan_recipe
from isogloss.runs.splits import describe_part
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training import gradient_conflict
from isogloss.training.gradient_conflict import (
    ALL,
    Conflict,
    ConflictSampling,
    Pool,
    Similarity,
    compare_gradients,
    compare_languages,
    conflict_rows,
    example_pool,
    gradient,
    sampled_conflict,
)
from isogloss.training.setting import TextSetting
from made_up import SPANS
from made_up_text import TINY
from tiny import dotted_changes, tiny
from trained import equal, weights

PARTS = {
    "words": ParameterGroup(0, "embeddings"),
    "one": ParameterGroup(1, "attention"),
    "two": ParameterGroup(1, "feed-forward"),
    "three": ParameterGroup(2, "feed-forward"),
    "head": ParameterGroup(None, "head"),
}


def draw_gradients(seed, *, names=tuple(PARTS), size=5):
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randn(size, size, generator=random) for name in names}


def flat(gradients, names):
    return torch.cat([gradients[name].double().flatten() for name in names])


def cosines(gradients):
    return {round(similar_items.cosine, 12) for similar_items in gradients}


# The cosine


def test_a_gradient_with_itself_has_cosine_1_with_its_opposite_minus_1():
    tensors = draw_gradients(0)
    opposite = {name: -part for name, part in tensors.items()}
    assert cosines(compare_gradients(tensors, tensors, PARTS).values()) == {1}
    assert cosines(compare_gradients(tensors, opposite, PARTS).values()) == {-1}


def test_gradients_at_right_angles_have_cosine_0():
    tensors, other_tensors = ({name: torch.zeros(4) for name in PARTS} for _ in range(2))
    for name in PARTS:
        tensors[name][0] = 2.0
        other_tensors[name][1] = 3.0
    assert {
        similar_gradient.cosine
        for similar_gradient in compare_gradients(tensors, other_tensors, PARTS).values()
    } == {0.0}


def test_a_gradient_of_0_has_no_cosine():
    tensors = draw_gradients(0)
    other_tensors = draw_gradients(1)
    tensors["head"].zero_()
    gradients = compare_gradients(tensors, other_tensors, PARTS)
    assert gradients[ParameterGroup(None, "head")].cosine is None
    assert gradients[ALL].cosine is not None


@pytest.mark.slow
@given(st.integers(0, 99), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_the_scale_of_a_loss_changes_nothing(seed, x, y):
    tensors = draw_gradients(seed)
    other_tensors = draw_gradients(seed + 1000)
    scaled_parts = [
        {name: part.double() * factor for name, part in own_tensors.items()}
        for own_tensors, factor in ((tensors, x), (other_tensors, y))
    ]
    for part, similar_items in each(compare_gradients(tensors, other_tensors, PARTS).items()):
        assert compare_gradients(*scaled_parts, PARTS)[part].cosine == pytest.approx(
            similar_items.cosine, abs=1e-9
        )


@given(st.integers(0, 99))
def test_every_part_has_the_cosine_of_its_parameters_in_one_vector(seed):
    tensors = draw_gradients(seed)
    other_tensors = draw_gradients(seed + 1000)
    gradients = compare_gradients(tensors, other_tensors, PARTS)
    members = {
        ALL: tuple(PARTS),
        ParameterGroup(None, "embeddings"): ("words",),
        ParameterGroup(None, "attention"): ("one",),
        ParameterGroup(None, "feed-forward"): ("two", "three"),
        ParameterGroup(None, "head"): ("head",),
        ParameterGroup(1, "all"): ("one", "two"),
        ParameterGroup(2, "all"): ("three",),
        ParameterGroup(1, "attention"): ("one",),
        ParameterGroup(1, "feed-forward"): ("two",),
        ParameterGroup(2, "feed-forward"): ("three",),
    }
    assert gradients.keys() == members.keys()
    for part, names in members.items():
        expected = torch.cosine_similarity(flat(tensors, names), flat(other_tensors, names), dim=0)
        assert gradients[part].cosine == pytest.approx(float(expected), abs=1e-12)


def test_chunks_change_nothing(monkeypatch):
    tensors = draw_gradients(0)
    other_tensors = draw_gradients(1)
    whole_gradient = compare_gradients(tensors, other_tensors, PARTS)[ALL]
    monkeypatch.setattr(gradient_conflict, "CHUNK", 7)
    assert compare_gradients(tensors, other_tensors, PARTS)[ALL].product == pytest.approx(
        whole_gradient.product, rel=1e-12
    )


def test_parameters_of_one_of_the_two_alone_do_not_count():
    tensors = draw_gradients(0)
    other_tensors = draw_gradients(1)
    gradients = compare_gradients(
        tensors, other_tensors, {name: part for name, part in PARTS.items() if name != "two"}
    )
    del other_tensors["two"]
    assert compare_gradients(tensors, other_tensors, PARTS) == gradients
    assert compare_gradients(tensors, {}, PARTS) == {}


@given(st.lists(st.tuples(*[st.floats(-9, 9)] * 3), min_size=1, max_size=5))
def test_numbers_of_parts_add_up(parts):
    total = sum((Similarity(*numbers) for numbers in parts), Similarity())
    assert (total.product, total.first, total.second) == pytest.approx(
        [sum(side) for side in zip(*parts, strict=True)]
    )


# The gradient of a large batch


def toy():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


TOY = {
    f"{layer}.{kind}": ParameterGroup(layer or 1, "attention")
    for layer in (0, 2)
    for kind in ("weight", "bias")
}


def points(seed, count=12):
    random = torch.Generator().manual_seed(seed)
    return torch.randn(count, 4, generator=random), torch.randn(count, 1, generator=random)


def squares(model, x, y):
    return (model(x) - y).square()


def test_parts_of_a_batch_give_the_gradient_of_the_whole():
    model = toy()
    x, y = points(0)
    squares(model, x, y).mean().backward()
    whole_grads = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    fields = gradient(model, (squares(model, x[n : n + 3], y[n : n + 3]).sum() / 12 for n in range(0, 12, 3)))
    assert fields.keys() == whole_grads.keys()
    assert all(torch.allclose(fields[name], whole_grads[name], atol=1e-6) for name in whole_grads)


def test_examples_in_parts_give_the_gradient_of_the_tasks_loss_on_all(bert_folder, monkeypatch):
    task = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    model = task.head(bert_folder, seed=0)
    rows = task.encode(sentences("en", 24, longest=30), tokenizer)
    task.loss(model, collate(rows, padding=tokenizer.pad_token_id)).backward()
    whole_grads = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    pool = example_pool(model, {"en": rows}, task, padding=tokenizer.pad_token_id, precision="float32")
    monkeypatch.setattr(gradient_conflict, "ROWS", 2)
    parts = gradient(model, pool.losses("en", range(24), 0))
    for name, part in each(parts.items()):
        torch.testing.assert_close(part, whole_grads[name], rtol=1e-4, atol=1e-6)


def test_gradients_that_were_there_do_not_count_and_none_is_left():
    model = toy()
    x, y = points(0)
    clean = gradient(model, [squares(model, x, y).mean()])
    squares(model, *points(1)).sum().backward()
    again = gradient(model, [squares(model, x, y).mean()])
    assert all(torch.equal(clean[name], again[name]) for name in each(clean))
    assert all(weight.grad is None for weight in model.parameters())


def test_weights_and_random_numbers_stay_as_they_were():
    model = toy()
    weights_before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    state = torch.random.get_rng_state()
    conflict_rows(
        model, ("a", "b"), lambda *choice: [squares(model, *points(len(choice[0]) + choice[1])).mean()], TOY
    )
    assert all(torch.equal(weights_before[name], weight) for name, weight in model.named_parameters())
    assert torch.equal(state, torch.random.get_rng_state())


# Pairs of languages


def losses_of(model, arguments=None):
    def losses(language, number):
        if arguments is not None:
            arguments.append((language, number))
        yield squares(model, *points(10 * "abcdef".index(language) + number)).mean()

    return losses


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_pair_is_compared_once_and_no_more_gradients_are_made_than_said(count):
    model = toy()
    arguments = []
    languages = "abcdef"[:count]
    result = list(compare_languages(model, languages, losses_of(model, arguments), TOY))
    assert sorted((first_part, second) for first_part, second, _ in result) == list(
        combinations_with_replacement(languages, 2)
    )
    assert len(arguments) == (count**2 + count) // 2 + 1
    for first_part, second, similar_items in result:
        own_gradient = gradient(model, losses_of(model)(first_part, 0))
        other_gradient = gradient(model, losses_of(model)(second, 1 if first_part == second else 0))
        assert similar_items == compare_gradients(own_gradient, other_gradient, TOY)


def test_no_more_than_two_gradients_are_in_memory(monkeypatch):
    model = toy()
    alive = weakref.WeakSet()
    most_totals = []
    weight = next(model.parameters())

    def count_losses(model, losses):
        most_totals.append(
            sum(tensor.shape == weight.shape for tensor in alive)
        )  # Before the next gradient is added.
        fields = result(model, losses)
        alive.update(fields.values())
        return fields

    result = gradient
    monkeypatch.setattr(gradient_conflict, "gradient", count_losses)
    list(compare_languages(model, "abcd", losses_of(model), TOY))
    assert len(most_totals) == 11
    assert max(most_totals) == 1


def test_one_batch_twice_is_the_same_gradient_and_the_control_corrects_the_pair():
    model = toy()
    rows = conflict_rows(model, "ab", lambda *_: [squares(model, *points(0)).mean()], TOY)
    assert {round(row["cosine"], 12) for row in rows} == {1}
    assert {round(row["within"], 12) for row in rows if row["first"] != row["second"]} == {1}
    assert {row["within"] for row in rows if row["first"] == row["second"]} == {None}


def test_within_is_the_geometric_mean_of_both_controls_and_none_where_one_is_below_0():
    model = toy()
    rows = {
        (r["first"], r["second"]): r
        for r in conflict_rows(model, "abc", losses_of(model), TOY)
        if r["module"] == "all"
    }
    for first_language, second in ("ab", "ac", "bc"):
        cosine = rows[first_language, first_language]["cosine"]
        other_cosine = rows[second, second]["cosine"]
        expected = (cosine * other_cosine) ** 0.5 if min(cosine, other_cosine) > 0 else None
        assert rows[first_language, second]["within"] == pytest.approx(expected)
    assert len({row["within"] is None for row in rows.values()}) == 2


def test_noise_lowers_the_cosine_and_within_takes_it_out_again():
    """Two true gradients at 60 degrees, each batch with noise as long as the gradient itself."""
    size = 20000
    random = torch.Generator().manual_seed(0)
    model = nn.Linear(size, 1, bias=False)
    truth = {"a": torch.zeros(size), "b": torch.zeros(size)}
    truth["a"][0] = 1.0
    truth["b"][0] = 0.5
    truth["b"][1] = 0.75**0.5

    def losses(language, _):
        noise = torch.randn(size, generator=random) / size**0.5
        return [(model.weight * (truth[language] + noise)).sum()]

    rows = conflict_rows(model, "ab", losses, {"weight": ParameterGroup(None, "head")})
    (pair,) = [row for row in rows if row["first"] != row["second"] and row["module"] == "all"]
    assert pair["cosine"] == pytest.approx(0.25, abs=0.03)
    assert pair["cosine"] / pair["within"] == pytest.approx(0.5, abs=0.05)


def test_layers_are_left_out_when_they_are_not_asked_for():
    model = toy()
    rows = conflict_rows(model, "a", losses_of(model), TOY, layers=False)
    assert {(row["layer"], row["module"]) for row in rows} == {(None, "all"), (None, "attention")}


# Parts of real encoders


def test_every_parameter_of_an_encoder_is_in_one_part(encoder_folder):
    model = load_masked_lm(encoder_folder)
    parts = parts_of(model)
    assert parts.keys() == {name for name, _ in model.named_parameters()}
    layers = model.config.num_hidden_layers
    kinds = {(part.layer, part.module) for part in parts.values()}
    assert {(0, "embeddings"), (None, "head")} <= kinds
    for site in family_of(model).sites(model):
        assert {(site.layer, "attention"), (site.layer, "feed-forward")} <= kinds
    assert all(part.layer in (None, *range(layers + 1)) for part in parts.values())
    inside = [name for name, part in parts.items() if part.module == "head"]
    assert not [name for name in inside if name.startswith(f"{model.base_model_prefix}.")]


def test_an_output_layer_that_shares_the_embeddings_is_counted_once(bert_folder):
    model = load_masked_lm(bert_folder)
    assert parts_of(model)["bert.embeddings.word_embeddings.weight"] == ParameterGroup(0, "embeddings")
    assert not any("decoder.weight" in name for name in parts_of(model))


def test_what_a_language_has_for_itself_is_no_part(encoder_folder):
    model = load_masked_lm(encoder_folder)
    parts_before = parts_of(model)
    add_modules(model, Modules(kind="adapter"), ("en", "fr"), seed=0)
    assert parts_of(model) == parts_before


WATCHED = Conflict(every=2, batch=4)
METHOD = with_fields(MaskedLanguageModelling(), **TINY, batch_subwords=64)


def pairs(rows):
    return {(row["first"], row["second"]) for row in rows if "cosine" in row}


def steps(rows):
    return list(dict.fromkeys(row["step"] for row in rows if "cosine" in row))


def text_setting(folder, stop=-1):
    def on_progress(progress):
        if progress.what == "pretraining" and progress.done >= stop > 0:
            raise KeyboardInterrupt

    sizes = {"layers": 2, "dim": 16, "heads": 2, "feed_forward": 32, "vocabulary": 90, "positions": 16}
    return TextSetting(
        text=lambda language: SPANS if language == "en" else [line[::-1] for line in SPANS],
        translations=None,
        languages=("en", "de"),
        architecture=Architecture(family="bert", **sizes, dropout=0.1),
        folder=folder,
        seed=0,
        on_progress=on_progress,
    )


# Masked language modelling


@pytest.mark.slow
def test_pretraining_that_is_watched_gives_the_same_weights_to_the_bit(tmp_path):
    plain_training = METHOD.train(text_setting(tmp_path / "plain"))
    training = with_fields(METHOD, conflict=WATCHED).train(text_setting(tmp_path / "seen"))
    assert equal(plain_training, training)
    assert [row for row in training.rows if "cosine" not in row] == plain_training.rows
    assert steps(training.rows) == [2, 4, 6, 8]
    assert pairs(training.rows) == {("en", "en"), ("en", "de"), ("de", "de")}
    assert {row["layer"] for row in training.rows if "cosine" in row} == {None}
    assert {row["module"] for row in training.rows if "cosine" in row} >= {
        "all",
        "attention",
        "feed-forward",
        "head",
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_pretraining_that_is_watched_and_interrupted_ends_as_if_it_was_not(tmp_path):
    method = with_fields(METHOD, conflict=WATCHED)
    whole_training = method.train(text_setting(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        method.train(text_setting(tmp_path / "again", stop=3))
    again = method.train(text_setting(tmp_path / "again"))
    assert equal(whole_training, again)
    assert whole_training.rows == again.rows


def test_layers_are_watched_when_they_are_asked_for(tmp_path):
    conflict = Conflict(every=8, batch=2, layers=True)
    training = with_fields(METHOD, conflict=conflict).train(text_setting(tmp_path))
    assert {row["layer"] for row in training.rows if "cosine" in row} == {None, 1, 2}


# Fine-tuning


@pytest.mark.nightly
@pytest.mark.slow
def test_fine_tuning_that_is_watched_gives_the_same_weights_to_the_bit(make_setting, tmp_path):
    plain_training = Bilingual().train(make_setting(target=("de",), folder=tmp_path / "plain"))
    method = Bilingual(conflict=WATCHED)
    training = method.train(make_setting(target=("de",), folder=tmp_path / "seen"))
    assert equal(weights(plain_training.model), weights(training.model))
    assert [row for row in training.rows if "cosine" not in row] == plain_training.rows
    assert pairs(training.rows) == {("en", "en"), ("en", "de"), ("de", "de")}
    assert steps(training.rows)[:2] == [2, 4]
    assert steps(training.rows)[-1] == plain_training.rows[-1]["step"]


@pytest.mark.nightly
@pytest.mark.slow
def test_translations_are_watched_as_languages_of_their_own(make_setting, tmp_path):
    setting = make_setting(target=("de",), folder=tmp_path)
    rows = TranslateTrain(conflict=WATCHED).train(setting).rows
    assert pairs(rows) == {("en", "en"), ("en", "en-de"), ("en-de", "en-de")}


# Runs


def test_a_method_that_is_not_watched_keeps_its_id():
    """Ids as they were before methods could be watched."""
    assert (identity(Bilingual()), identity(MaskedLanguageModelling())) == ("8ea8eba5ab80", "32e31b236857")
    assert identity(Bilingual()) != identity(Bilingual(conflict=WATCHED))


def test_watching_is_no_part_of_a_methods_label():
    assert describe_part(Bilingual(conflict=WATCHED)) == "bilingual"


@pytest.mark.parametrize(
    ("conflict", "message"),
    [
        ({"every": 0}, r"conflict\.every"),
        ({"batches": 3}, r"conflict\.batches: .*'batch'"),
    ],
)
def test_a_recipe_asks_for_it_and_mistakes_are_found_before_anything_runs(tmp_path, conflict, message):
    path = str(tiny(tmp_path))
    methods = "grid__method"
    request = {methods: [{"name": "bilingual", "conflict": {"every": 5, "batch": 8}}], "measure": []}
    runs = plan_recipe(path, changes=dotted_changes(**request)).runs
    assert {run.method for run in runs} == {METHODS["bilingual"](conflict=Conflict(every=5, batch=8))}
    request[methods][0]["conflict"] = conflict
    with pytest.raises(ConfigError, match=message):
        plan_recipe(path, changes=dotted_changes(**request))


def test_batches_are_of_one_size_in_all_languages():
    arguments = {}

    def losses(language, numbers, seed):
        arguments.setdefault(language, []).append(len(numbers))
        return [sum(weight.sum() for weight in model.parameters()) * (1 + seed % 3)]

    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertForMaskedLM(BertConfig(**sizes, vocab_size=9))
    rows = sampled_conflict(model, Pool({"en": 100, "de": 7}, losses), ConflictSampling(batch=32, seed=0))
    assert arguments == {"en": [3, 3], "de": [3, 3]}
    assert {row["batch"] for row in rows} == {3}
