"""Functions on users' models equal the diagnostics of recipes, and refuse other models in one line."""

import doctest
import re
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import nn

import isogloss
from isogloss.core.errors import ConfigError, DataError, IsoglossError, ModelError
from isogloss.core.registry import feature_entries
from isogloss.data.examples import Translation
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.loading import load_masked_lm, load_whole
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.representations.cka import Cka
from isogloss.features.representations.retrieval import Retrieval
from isogloss.features.word_distance.diagnostic import WordDistance
from isogloss.training.parallel_text import BitextSentences
from made_up import TEXT

WORDS = TEXT.split()
FIRST = [" ".join(WORDS[start : start + 5]) for start in range(12)]
SECOND = [" ".join(reversed(WORDS[start : start + 5])) for start in range(12)]
LINKS = [[(word, 4 - word) for word in range(5)]] * 12
HOMES = {
    **isogloss._HOMES,
    **{name: place.partition(":")[0] for name, place in feature_entries("functions").items()},
}
"""The module of each public name."""

TYPES = "isogloss.functional.given_models"
MODULES = sorted(
    {home for home in HOMES.values() if ".functional." in home or home.endswith(".functions")} - {TYPES}
)


@pytest.fixture(scope="module")
def encoder(bert_folder):
    """A tiny BERT with its masked-LM head, and its tokenizer."""
    return load_masked_lm(bert_folder), load_tokenizer(bert_folder)


def run_diagnostic(encoder, diagnostic):
    """Return the rows of a diagnostic of a recipe on the same sentences, as a frame."""
    bitext = [
        Translation(id=str(index), first=first_part, second=second, links=tuple(links))
        for index, (first_part, second, links) in enumerate(zip(FIRST, SECOND, LINKS, strict=True))
    ]
    setting = MeasureSetting(
        subjects=(Subject(id="encoder", rows=(), folder=Path()),),
        languages=("en", "de"),
        split="test",
        source=(),
        load=lambda _: encoder[0],
        evaluation=lambda _: None,
        encoder=lambda _: encoder,
        bitext=lambda _: bitext,
        parallel=BitextSentences(lambda _: bitext),
    )
    return pd.DataFrame(diagnostic.measure(setting))


@pytest.mark.parametrize("module", MODULES)
def test_each_function_has_an_example_that_holds(module):
    home = import_module(module)
    public = [name for name, path in HOMES.items() if path == module]
    examples = {test.name.rpartition(".")[2]: test for test in doctest.DocTestFinder().find(home)}
    assert public
    assert all(examples[name].examples for name in public)
    assert doctest.testmod(home).failed == 0


def test_cka_equals_the_diagnostic(encoder):
    rows = run_diagnostic(encoder, Cka()).set_index("layer")
    cka = partial(isogloss.cka, *encoder, FIRST, SECOND, precision="auto")
    assert cka().tolist() == rows["cka"].tolist()
    assert cka(debiased=True).tolist() == rows["debiased"].tolist()


@pytest.mark.parametrize("function", [isogloss.cka, isogloss.retrieval, isogloss.word_distances])
def test_results_name_their_precision_which_is_float32_by_default(encoder, function):
    exact, rounded_value = (
        function(*encoder, FIRST, SECOND, **options) for options in ({}, {"precision": "bfloat16"})
    )
    assert (exact.attrs, rounded_value.attrs) == ({"precision": "float32"}, {"precision": "bfloat16"})
    measured_precision = function(*encoder, FIRST, SECOND, precision="auto").attrs["precision"]
    assert measured_precision in ("float32", "bfloat16")


@pytest.mark.parametrize(("csls", "similarity"), [(0, "cosine"), (3, "CSLS 3")])
def test_retrieval_equals_the_diagnostic(encoder, csls, similarity):
    rows = run_diagnostic(encoder, Retrieval(layers=(0, 1, 2, 3), csls=csls, centred=True))
    rows = rows[rows["similarity"] == similarity].set_index("layer")
    frame = isogloss.retrieval(*encoder, FIRST, SECOND, csls=csls, centred=True, precision="auto")
    assert frame["forward"].tolist() == rows["accuracy_forward"].tolist()
    assert frame["backward"].tolist() == rows["accuracy_backward"].tolist()


def test_word_distances_equal_the_diagnostic(encoder):
    # Unrelated words are drawn by the pair's name.
    options = {"languages": ("en", "de"), "layers": (0, 1, 2), "precision": "auto"}
    frame = isogloss.word_distances(*encoder, FIRST, SECOND, LINKS, **options)
    rows = run_diagnostic(encoder, WordDistance(layers=(0, 1, 2), distances=("l2",)))
    rows = rows[rows["auc"].notna()].set_index("layer")
    assert frame["auc"].tolist() == rows["auc"].tolist()
    assert frame["related"].tolist() == rows["related_mean"].tolist()
    assert frame["unrelated_pairs"].tolist() == rows["unrelated_pairs"].tolist()


def test_lists_of_words_are_read_as_the_texts_that_they_spell(encoder):
    split = [text.split() for text in FIRST], [text.split() for text in SECOND]
    for function in (isogloss.cka, isogloss.retrieval, isogloss.word_distances):
        plain_result = function(*encoder, FIRST, SECOND)
        listing = function(*encoder, *split)
        assert plain_result.equals(listing)


def test_the_model_has_its_own_mode_again(encoder):
    model = encoder[0].train()
    frozen_layer = model.base_model.encoder.layer[0].eval()
    isogloss.cka(*encoder, FIRST, SECOND)
    assert model.training and not frozen_layer.training


def test_align_with_a_model_links_words_with_themselves(encoder):
    links = isogloss.align(FIRST, FIRST, *encoder, matching="match")
    words = [text.split() for text in FIRST]
    assert links == [[(word, word) for word in range(5)] for _ in words]


@pytest.fixture
def ends():
    """Two models of three parameters."""
    torch.manual_seed(0)
    return nn.Linear(2, 1), nn.Linear(2, 1)


def values(model):
    return {"weight": model.weight.sum().item(), "bias": model.bias.item()}


def test_a_path_is_linear_in_what_is_linear_and_begins_and_ends_at_the_models(ends):
    frame = isogloss.path(*ends, values, alphas=[0, 0.25, 1])
    assert frame.loc[0.0].to_dict() == values(ends[0])
    assert frame.loc[1.0].to_dict() == values(ends[1])
    distance = 0.75 * frame.loc[0.0] + 0.25 * frame.loc[1.0]
    assert frame.loc[0.25].to_dict() == pytest.approx(distance.to_dict())


def test_a_path_gives_the_model_back(ends):
    weights = [weight.tolist() for weight in ends[0].parameters()]
    isogloss.path(*ends, values, alphas=[0.5])
    assert [weight.tolist() for weight in ends[0].parameters()] == weights


def test_a_score_that_ignores_the_model_it_is_given_is_said(ends):
    with pytest.warns(UserWarning, match="3 points"):
        isogloss.path(*ends, lambda _: ends[0].bias.item(), alphas=[0, 0.5, 1])


def test_equal_scores_of_a_model_that_ran_are_no_warning(ends):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = isogloss.path(*ends, lambda model: float(model(torch.ones(2)).numel()), alphas=[0, 0.5, 1])
    assert frame["score"].tolist() == [1, 1, 1]


def test_both_axes_of_a_plane_are_paths(ends):
    torch.manual_seed(1)
    other_linear = nn.Linear(2, 1)
    plane = isogloss.plane(ends[0], ends[1], other_linear, values, alphas=[0, 0.5, 1])
    first_path, second = (
        isogloss.path(ends[0], end, values, alphas=[0, 0.5, 1]) for end in (ends[1], other_linear)
    )
    assert plane.xs(0.0, level="alpha_second").equals(first_path.rename_axis("alpha_first"))
    assert plane.xs(0.0, level="alpha_first").equals(second.rename_axis("alpha_second"))


def test_a_score_of_one_number_is_a_column(ends):
    assert isogloss.path(*ends, lambda model: model.bias.item(), alphas=[0]).columns.tolist() == ["score"]


def test_deltas_are_the_lengths_and_the_angle_of_differences(ends):
    origin = nn.Linear(2, 1)
    with torch.no_grad():
        flat = [torch.cat([w.flatten() for w in model.parameters()]) for model in (origin, *ends)]
    first_difference, second = (side - flat[0] for side in flat[1:])
    row = isogloss.deltas(origin, *ends).loc["all"]
    assert row["norm_first"] == pytest.approx(float(first_difference.norm()))
    assert row["ratio"] == pytest.approx(float(first_difference.norm() / second.norm()))
    cosine = float(first_difference @ second / first_difference.norm() / second.norm())
    assert np.cos(np.radians(row["angle"])) == pytest.approx(cosine, abs=1e-6)


def test_the_squared_lengths_of_layers_add_up(encoder, bert_folder):
    origin = encoder[0]
    first_model = load_masked_lm(bert_folder)
    with torch.no_grad():
        for weight in first_model.parameters():
            weight.add_(torch.randn(weight.shape))
    frame = isogloss.deltas(origin, first_model, first_model)
    assert "layer 1" in frame.index
    lengths = frame["norm_first"] ** 2
    assert lengths.drop("all").sum() == pytest.approx(lengths["all"])


@pytest.fixture
def three():
    """An origin and two models with other weights."""
    torch.manual_seed(2)
    return nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)


def flat(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def test_an_average_is_the_weighted_mean_and_leaves_the_models(three):
    _, first_three, second = three
    weights = flat(first_three)
    mean = isogloss.average([first_three, second], [0.25, 0.75])
    assert torch.allclose(flat(mean), 0.25 * flat(first_three) + 0.75 * flat(second))
    assert torch.equal(flat(first_three), weights)


def test_weights_of_1_add_task_vectors(three):
    origin, first_three, second = three
    added_average = isogloss.average([first_three, second], [1, 1], origin=origin)
    assert torch.allclose(flat(added_average), flat(first_three) + flat(second) - flat(origin), atol=1e-6)


def test_ties_keeps_the_largest_changes_of_the_elected_sign(three):
    origin, first_linear, second = (nn.Linear(4, 1, bias=False) for _ in range(3))
    for model, values in ((origin, [0.0] * 4), (first_linear, [4.0, -3, 1, 0]), (second, [2.0, 4, -1, 0])):
        model.weight.data = torch.tensor([values])
    ties = isogloss.average([first_linear, second], origin=origin, density=0.5)
    assert flat(ties).tolist() == pytest.approx([3.0, 4.0, 0.0, 0.0])


def test_adjustment_equals_the_method_on_a_folder(bert_folder, encoder, tmp_path):
    from isogloss.features.adjustment.methods import CrossLingualAdjustment
    from isogloss.training.setting import AdjustSetting

    bitext = [
        Translation(id=str(index), first=first_part, second=second, links=tuple(links))
        for index, (first_part, second, links) in enumerate(zip(FIRST, SECOND, LINKS, strict=True))
    ]
    setting = AdjustSetting(bitext={"source-target": bitext}, start=str(bert_folder), folder=tmp_path, seed=3)
    trained_parameters = dict(CrossLingualAdjustment().train(setting).model.named_parameters())
    model = load_whole(bert_folder, attention=fastest_attention())
    weights = {name: weight.clone() for name, weight in model.named_parameters()}
    adjusted_parameters = dict(
        isogloss.adjust(model, encoder[1], FIRST, SECOND, LINKS, seed=3).named_parameters()
    )
    changed_text = "bert.encoder.layer.0.output.dense.weight"
    assert not torch.allclose(adjusted_parameters[changed_text], weights[changed_text], atol=1e-5)
    assert [
        name
        for name, weight in adjusted_parameters.items()
        if not torch.equal(weight, trained_parameters[name])
    ] == []
    assert [name for name, weight in model.named_parameters() if not torch.equal(weight, weights[name])] == []


def batch(model, seed):
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, model.config.vocab_size, (2, 6), generator=random)
    return {"input_ids": ids, "labels": ids}


def test_gradient_conflict_is_the_cosine_of_gradients_by_hand(encoder):
    model = encoder[0].eval()
    batches = {"en": [batch(model, 0), batch(model, 1)], "sw": [batch(model, 2), batch(model, 3)]}
    frame = isogloss.gradient_conflict(model, batches)
    row = frame[(frame["first"] == "en") & (frame["second"] == "sw") & (frame["module"] == "all")].iloc[0]
    flat = []
    for language in ("en", "sw"):
        model.zero_grad()
        model(**batches[language][0]).loss.backward()
        flat.append(torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None]))
    model.zero_grad(set_to_none=True)
    manual_similarities = float(torch.nn.functional.cosine_similarity(*flat, dim=0))
    assert row["cosine"] == pytest.approx(manual_similarities, abs=1e-5)
    assert all(weight.grad is None for weight in model.parameters())


def test_a_loss_of_ones_own_counts(encoder):
    batches = {"en": [1.0, 1.0], "sw": [-1.0, -1.0]}
    frame = isogloss.gradient_conflict(
        encoder[0], batches, lambda model, sign: sign * model.get_input_embeddings().weight.sum()
    )
    assert frame[(frame["first"] == "en") & (frame["second"] == "sw")]["cosine"].unique() == pytest.approx(-1)


@pytest.mark.slow
def test_gates_of_equal_languages_are_equal_and_the_model_stays(encoder):
    model = encoder[0]
    weights = [weight.clone() for weight in model.parameters()]
    batches = [batch(model, 0), batch(model, 1)]
    frame = isogloss.language_gates(model, {"en": batches, "sw": batches}, steps=4, draws=2)
    own_frame = frame[(frame["first"] == frame["second"]) & (frame["module"] == "all")]
    assert own_frame["first"].tolist() == ["en", "sw"]
    assert own_frame["cosine"].between(-1, 1).all()
    assert {"attention", "feed-forward", "all"} <= set(frame["module"])
    assert list(map(torch.equal, weights, model.parameters())) == [True] * len(weights)
    assert [weight.requires_grad for weight in model.parameters()] == [True] * len(weights)


RIGHT = [1, 0, 1, 1, 1, 1, 0, 1, 1, 1]
WRONG = [0, 0, 1, 0, 1, 0, 0, 1, 0, 1]


def test_one_seed_is_tested_by_mcnemar():
    comparison = isogloss.compare(RIGHT, WRONG)
    assert comparison["test"] == "McNemar"
    assert comparison["p_examples"] == pytest.approx(stats.binomtest(0, 4).pvalue)
    assert comparison["score"] - comparison["baseline_score"] == pytest.approx(comparison["difference"])


def test_values_of_one_seed_are_tested_by_the_paired_t_test():
    ours, theirs = np.random.default_rng(0).normal(size=(2, 40))
    comparison = isogloss.compare(ours, theirs)
    assert comparison["p_examples"] == pytest.approx(stats.ttest_rel(ours, theirs).pvalue)
    assert comparison["error_examples"] == pytest.approx(stats.sem(ours - theirs))


def test_seeds_are_paired_and_give_an_interval():
    ours = {0: RIGHT, 1: RIGHT[::-1], 2: RIGHT}
    theirs = {2: WRONG, 1: WRONG, 0: [0] * 10}
    comparison = isogloss.compare(ours, theirs)
    differences = [np.mean(ours[seed]) - np.mean(theirs[seed]) for seed in ours]
    assert comparison["p_units"] == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert comparison["low"] < comparison["difference"] < comparison["high"]


@pytest.mark.parametrize(
    ("ours", "gold", "metric", "score"),
    [
        (["a", "b", "a"], ["a", "b", "b"], "accuracy", 2 / 3),
        ([["B-PER", "O"], ["O"]], [["B-PER", "O"], ["O"]], "span_f1", 1.0),
        ([["DET", "NOUN"], ["VERB"]], [["DET", "VERB"], ["VERB"]], "accuracy", 2 / 3),
        ([{"joy"}, {"joy", "fear"}], [{"joy"}, {"joy", "fear"}], "", 1.0),
        ([1.0, 2.0, 3.5], [2.0, 4.0, 7.0], "pearson", 1.0),
    ],
)
def test_predictions_of_every_kind_are_scored(ours, gold, metric, score):
    comparison = isogloss.compare(ours, ours, gold, metric=metric)
    assert comparison["score"] == pytest.approx(score)
    assert comparison["difference"] == 0


def test_answers_are_scored_as_squad_does():
    comparison = isogloss.compare(["the cat"], ["a dog"], [["cat", "dogs"]], metric="em")
    assert (comparison["score"], comparison["baseline_score"]) == (1, 0)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda e: isogloss.cka(*e, FIRST[:3], SECOND[:3]), DataError, "3 sentences"),
        (lambda e: isogloss.cka(*e, FIRST, SECOND[:3]), DataError, "12 sentences, 3 translations"),
        (lambda e: isogloss.cka(*e, FIRST, SECOND, layers=[9]), ConfigError, "no layer 9"),
        (lambda e: isogloss.cka(nn.Linear(1, 1), e[1], FIRST, SECOND), ModelError, "Linear"),
        (lambda e: isogloss.align(FIRST, SECOND, e[0]), ConfigError, "tokenizer"),
        (
            lambda e: isogloss.word_distances(*e, FIRST, SECOND, [[(9, 0)]] * 12),
            DataError,
            r"\(9, 0\).*0.*4",
        ),
        (lambda _: isogloss.path(nn.Linear(2, 1), nn.Linear(3, 1), values), ModelError, "weight"),
        (lambda e: isogloss.gradient_conflict(e[0], {"en": [{}]}), ConfigError, "en.*1 batches"),
        (lambda e: isogloss.gradient_conflict(nn.Linear(1, 1), {"en": [1, 2]}), ModelError, "Linear"),
        (lambda e: isogloss.language_gates(e[0], {"en": [{}]}), ConfigError, "1"),
        (lambda _: isogloss.average([nn.Linear(1, 1)], [2.0]), ConfigError, "as origin"),
        (lambda _: isogloss.average([nn.Linear(1, 1), nn.Linear(2, 1)]), ModelError, "weight.*shape"),
        (lambda e: isogloss.cka(*e, [], []), DataError, "0 sentences"),
        (lambda e: isogloss.retrieval(*e, [], []), DataError, "no texts"),
        (lambda e: isogloss.gradient_conflict(e[0], {}), ConfigError, "no batches"),
        (lambda _: isogloss.compare([], []), DataError, "no predictions"),
        (lambda _: isogloss.compare([], [], []), DataError, "no predictions"),
        (lambda _: isogloss.average([]), ConfigError, "0 models"),
        (lambda e: isogloss.adjust(*e, FIRST, SECOND, [[]] * 12), DataError, "link"),
        (lambda _: isogloss.compare([1, 0], [1]), DataError, "1 and 2"),
        (lambda _: isogloss.compare({1: [1]}, {2: [1]}), ConfigError, r"\[1\].*baseline \[2\]"),
        (lambda _: isogloss.compare(["a"], ["b"], ["a"], metric="acuracy"), IsoglossError, "accuracy"),
        (lambda _: isogloss.compare(["a"], ["b"], ["a", "b"]), DataError, "1 predictions.*2"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(encoder, call, error, text):
    with pytest.raises(error, match=text) as refusal:
        call(encoder)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("function", [isogloss.cka, isogloss.retrieval, isogloss.word_distances])
def test_slow_measurements_report_progress(encoder, function):
    calls = []
    function(*encoder, FIRST, SECOND, on_progress=calls.append)
    assert calls[-1].done == calls[-1].total


def test_both_ends_of_a_path_are_the_models_as_transformers_has_them(bert_folder):
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    load = AutoModelForSequenceClassification.from_pretrained
    models = [load(bert_folder, num_labels=3).eval() for _ in range(2)]
    inputs = AutoTokenizer.from_pretrained(bert_folder)(FIRST[:3], return_tensors="pt", padding=True)
    with torch.no_grad():
        single_logits = [model(**inputs).logits for model in models]
    logits = []
    isogloss.path(*models, lambda model: logits.append(model(**inputs).logits) or 0.0, alphas=[0, 1])
    assert not torch.equal(*single_logits)
    assert [torch.equal(*pair) for pair in zip(logits, single_logits, strict=True)] == [True, True]


HELD_BY = {
    "Advice": "test_the_largest_gain_that_fits_into_the_hours_is_advised",
    "AdvisedOption": "test_the_interval_is_the_prediction_interval_of_scipy",
    "Gain": "test_a_file_is_read_as_it_is_written",
    "Regret": "test_regret_is_that_of_the_definition",
    "advise": "test_the_largest_gain_that_fits_into_the_hours_is_advised",
    "held_out_regret": "test_regret_is_that_of_the_definition",
    "measured_gains": "test_gains_are_means_over_seeds_of_paired_scores_in_targets",
    "read_gains": "test_a_file_is_read_as_it_is_written",
    "ExpectedScore": "test_without_signals_it_is_the_plain_interval",
    "LabelConsistency": "test_a_model_is_consistent_with_itself_and_by_chance_with_noise",
    "Search": "test_few_values_are_all_tried_once",
    "SourceCandidate": "test_the_rule_is_the_mean_of_standardised_signals",
    "Trial": "test_a_trial_makes_what_is_chosen_by_and_nothing_else",
    "compare_outputs": "test_answers_are_scored_as_the_official_script_scores_them",
    "compare_runs": "test_holm_is_over_all_that_is_compared_on_a_test_set",
    "consistency": "test_a_model_is_consistent_with_itself_and_by_chance_with_noise",
    "expected_score": "test_without_signals_it_is_the_plain_interval",
    "rank_sources": "test_the_rule_is_the_mean_of_standardised_signals",
    "score_bound": "test_the_bound_holds_for_any_joint_table",
    "search": "test_the_best_recipe_makes_what_was_scored_also_at_the_scale_searched",
    "WordLinks": "test_links_are_of_the_words_that_come_with_them",
    "Comparison": "test_intervals_and_equivalence_are_those_of_student_over_examples",
    "States": "test_arrays_and_lists_are_states",
    "NearestSource": "test_the_error_is_over_sentences",
    "rank_sources_by_states": "test_shares_are_those_of_brute_force",
    "silver_labels": "test_a_label_is_the_most_probable_class_where_its_probability_exceeds_the_threshold",
    "shift_adapter": "test_adapters_move_by_the_difference_or_the_ratio_of_the_references",
    "mix_language_adapters": "test_a_recipe_gives_the_model_of_the_function",
    "calibration_error": "test_the_error_is_the_sum_over_bins",
    "fit_temperature": "test_the_temperature_has_the_least_loss",
    "ensemble_projection": "test_each_word_has_the_mean_of_its_own_and_its_links_probabilities",
    "AlignmentLoss": "test_the_alignment_loss_in_a_loop_trains_what_the_recipe_trains",
    "MetaLearner": "test_algorithm_1_in_a_loop_trains_what_the_recipe_trains",
    "MixupLoss": "test_x_mixup_in_trainer_trains_what_the_recipe_trains",
    "adjust": "test_adjustment_equals_the_method_on_a_folder",
    "align": "test_links_are_those_that_simalign_found",
    "anisotropy": "test_anisotropy_is_the_mean_cosine_of_all_pairs",
    "average": "test_an_average_is_the_weighted_mean_and_leaves_the_models",
    "cka": "test_cka_equals_the_diagnostic",
    "compare": "test_values_of_one_seed_are_tested_by_the_paired_t_test",
    "deltas": "test_deltas_are_the_lengths_and_the_angle_of_differences",
    "gradient_conflict": "test_gradient_conflict_is_the_cosine_of_gradients_by_hand",
    "language_gates": "test_similarity_of_gates_is_the_cosine_of_what_was_learned",
    "load_corpus": "test_a_corpus_and_an_encoder_are_loaded_by_name",
    "load_encoder": "test_a_corpus_and_an_encoder_are_loaded_by_name",
    "mine": "test_shuffled_sentences_are_mined",
    "mixing": "test_what_leaves_the_layer_is_the_formula",
    "move": "test_a_model_moves_along_a_random_direction_with_rows_of_its_lengths",
    "random_direction": "test_a_model_moves_along_a_random_direction_with_rows_of_its_lengths",
    "list_parts": "test_the_parts_of_every_family_contain_each_parameter_once",
    "perturb_parts": "test_random_directions_are_as_long_as_the_swap_row_by_row",
    "score_parts": "test_rows_are_what_the_function_returns",
    "strip_parts": "test_removed_adapters_of_peft_leave_the_base_model",
    "swap_parts": "test_a_part_moved_into_the_start_is_the_end_with_all_other_parts_of_the_start",
    "fusing": "test_each_adapter_computes_the_equation",
    "path": "test_both_ends_of_a_path_are_the_models_as_transformers_has_them",
    "plane": "test_both_axes_of_a_plane_are_paths",
    "project_labels": "test_tags_are_those_of_linked_words",
    "reorder_questions": "test_questions_are_written_in_the_order_with_answers_at_their_new_offsets",
    "representation_map": "test_a_map_has_the_components_of_all_sentences_together",
    "retrieval": "test_retrieval_equals_the_diagnostic",
    "states": "test_states_of_texts_are_means_of_their_subwords",
    "word_distances": "test_word_distances_equal_the_diagnostic",
}
"""For each function, the test that compares it with its diagnostic or method, or an external reference."""


def test_each_function_is_held_against_a_recipe_or_a_reference():
    folder = Path(__file__).parents[1]
    files = list(folder.rglob("test_*.py"))
    tests = {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    functions = {name for name, home in isogloss._HOMES.items() if ".functional." in home}
    functions |= set(feature_entries("functions"))
    assert functions - {"TextModel", "TextTokenizer"} == HELD_BY.keys()
    assert set(HELD_BY.values()) <= tests


def test_a_corpus_and_an_encoder_are_loaded_by_name():
    from isogloss.data.sources import Sources
    from isogloss.encoders.folders import shipped_folder

    model, tokenizer = isogloss.load_encoder("shipped")
    weights = dict(load_masked_lm(shipped_folder()).base_model.named_parameters())
    assert all(
        torch.equal(weight, weights[name]) for name, weight in model.named_parameters() if "pool" not in name
    )
    assert isogloss.load_corpus("ud", "qab", "dev") == Sources().examples("ud", "qab", "dev")
    assert tokenizer("tuki").input_ids[0] == tokenizer.cls_token_id


def test_a_corpus_that_comes_as_a_description_is_read_by_its_name(tmp_path):
    folder = tmp_path / "sib200" / "yor_Latn"
    folder.mkdir(parents=True)
    (folder / "test.tsv").write_text("index_id\tcategory\ttext\n7\ttravel\tÀárọ̀ ni\n", encoding="utf-8")
    (example,) = isogloss.load_corpus("sib200", "yor_Latn", "test", data=tmp_path)
    assert (example.id, example.text, example.label) == ("7", "Àárọ̀ ni", "travel")
    assert isogloss.corpus("sib200", data=tmp_path).name == "sib200"


def test_tags_are_those_of_linked_words():
    tagged_texts = [(("Anna", "Lind", "saw", "Rome"), ("B-PER", "I-PER", "O", "B-LOC"))]
    links = [[(0, 2), (1, 3), (2, 1), (3, 0)]]
    projected_labels = isogloss.project_labels(tagged_texts, ["Rom sah Anna Lind"], links)
    assert projected_labels == [(("Rom", "sah", "Anna", "Lind"), ("B-LOC", "O", "B-PER", "I-PER"))]


def test_similarity_of_gates_is_the_cosine_of_what_was_learned(encoder, monkeypatch):
    from isogloss.features.language_gates import functions

    calls = []
    learn = functions.learn_gates_on
    monkeypatch.setattr(
        functions,
        "learn_gates_on",
        lambda *args, **options: calls.append(learn(*args, **options)) or calls[-1],
    )
    model = encoder[0]
    batches = {"en": [batch(model, 0)], "sw": [batch(model, 1)]}
    frame = isogloss.language_gates(model, batches, steps=3, draws=1)
    row = frame[(frame["module"] == "all") & frame["layer"].isna()].iloc[0]
    flat = [torch.cat([part.flatten() for part in gates.log_alpha.values()]) for gates in calls]
    assert (row["first"], row["second"], row["gates"]) == ("en", "sw", len(flat[0]))
    assert row["cosine"] == pytest.approx(float(torch.cosine_similarity(*flat, dim=0)), abs=1e-5)


@pytest.mark.slow
def test_statistics_import_no_torch(tmp_path):
    import subprocess
    import sys

    program = "import isogloss, sys; isogloss.compare([1, 0], [0, 0]); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
