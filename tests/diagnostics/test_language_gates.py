"""Gates by language: similarity has known answers, and rows agree with the recorded masks."""

import re
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.rows import as_row
from isogloss.encoders.added.active_language import LanguageMaps
from isogloss.encoders.added.added_weights import language_parameters, write_language_maps
from isogloss.encoders.added.language_layers import LanguageMap
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.saving import save_model
from isogloss.features.gradient_conflict.diagnostic import GradientConflict
from isogloss.features.language_gates.diagnostic import (
    LanguageGates,
    correlation,
    gate_cosine,
    jaccard,
    kept_rows,
    parts_of,
    similarity_rows,
    specific_gates,
    specific_rows,
)
from isogloss.features.language_gates.gates import (
    GateGroup,
    GateKinds,
    Mask,
    gate_groups,
    prune_encoder,
    read_masks,
)
from isogloss.features.language_gates.rows import MaskPerplexityRow
from made_up import TEXT
from measuring import load, measure_setting, modular
from tiny import tiny

numbers = st.lists(st.floats(-10, 10), min_size=2, max_size=12)


def row(*values):
    return torch.tensor([float(value) for value in values])


def group(name, layer, module, *, size=4, parameters=3):
    return GateGroup(
        name=name, layer=layer, module=module, shape=(size,), parameters=parameters, gated_parameters=()
    )


GROUPS = [
    group("a1", 1, "attention"),
    group("f1", 1, "feed-forward", size=2, parameters=10),
    group("a2", 2, "attention"),
    group("f2", 2, "feed-forward", size=2, parameters=10),
]


def mask(language, draw=0, *, upper_bound=0.0, **values):
    fields = {field.name: values.get(field.name, [1.0] * field.size) for field in GROUPS}
    log_alpha = {name: torch.tensor(own_field) for name, own_field in fields.items()}
    return Mask(language=language, draw=draw, kinds=GateKinds(), log_alpha=log_alpha, above=upper_bound)


# Pure functions


def test_a_mask_is_like_itself_and_unlike_its_opposite():
    tensor = row(1, -2, 3, 0.5)
    assert gate_cosine(tensor, tensor) == correlation(tensor, tensor) == pytest.approx(1)
    assert gate_cosine(tensor, -tensor) == correlation(tensor, -tensor) == pytest.approx(-1)
    assert jaccard(tensor > 0, tensor > 0) == 1


def test_disjoint_masks_have_similarity_0():
    assert gate_cosine(row(1, 1, 0, 0), row(0, 0, 2, 1)) == 0
    assert jaccard(row(1, 1, 0, 0) > 0, row(0, 0, 2, 1) > 0) == 0
    assert jaccard(row(1, 1, 1, 0) > 0, row(0, 1, 1, 1) > 0) == 0.5


@given(numbers, st.floats(0.01, 100))
def test_scale_changes_no_cosine_and_a_common_shift_no_correlation(samples, scale):
    x = torch.tensor(samples, dtype=torch.float64)
    y = x.flip(0) + torch.arange(len(x))
    if float(x.norm()) > 1e-3 and float(x.std()) > 1e-3 and float(y.std()) > 1e-3:
        assert gate_cosine(scale * x, y) == pytest.approx(gate_cosine(x, y))
        assert correlation(scale * x + 5, y - 3) == pytest.approx(correlation(x, y), abs=1e-6)


def test_constant_or_zero_masks_have_no_similarity():
    assert gate_cosine(row(0, 0), row(1, 2)) is None
    assert correlation(row(3, 3), row(1, 2)) is None
    assert jaccard(row(0, 0) > 0, row(0, 0) > 0) is None


# Rows


def test_parts_are_layers_modules_and_all():
    parts = parts_of(GROUPS)
    assert {part: [field.name for field in own_part] for part, own_part in parts.items()} == {
        (1, "attention"): ["a1"],
        (1, "feed-forward"): ["f1"],
        (2, "attention"): ["a2"],
        (2, "feed-forward"): ["f2"],
        (None, "attention"): ["a1", "a2"],
        (None, "feed-forward"): ["f1", "f2"],
        (None, "all"): ["a1", "f1", "a2", "f2"],
    }


def test_masks_are_compared_two_by_two_in_every_part():
    masks = [mask("en"), mask("en", 1), mask("de", a2=[1.0, 1.0, -1.0, -1.0])]
    rows = list(similarity_rows("e", masks, GROUPS))
    pairs = {(pair.first, pair.first_draw, pair.second, pair.second_draw) for pair in rows}
    assert pairs == {("en", 0, "en", 1), ("en", 0, "de", 0), ("en", 1, "de", 0)}
    assert len(rows) == 3 * 7
    (result,) = [
        pair
        for pair in rows
        if (pair.first_draw, pair.second, pair.layer, pair.module) == (1, "de", 2, "attention")
    ]
    assert (result.gates, result.cosine, result.overlap) == (4, 0.0, 0.5)
    assert (result.only_first, result.only_second) == (2, 0)
    assert all(pair.cosine == pytest.approx(1) for pair in rows if pair.second == "en")


def test_the_kept_share_counts_parameters_not_gates():
    rows = list(kept_rows("e", [mask("en", f1=[1.0, -1.0], a1=[1.0, 1.0, 1.0, -1.0])], GROUPS))
    shares = {(item.layer, item.module): item.kept for item in rows}
    assert shares[1, "attention"] == 0.75
    assert shares[1, "feed-forward"] == 0.5
    assert shares[None, "all"] == pytest.approx((3 * 3 + 10 + 12 + 20) / 64)
    assert {model.parameters for model in rows if model.module == "all"} == {64}


def test_specific_gates_are_kept_by_all_masks_of_one_language_and_pruned_by_all_of_the_other():
    masks = [
        mask("en", 0, a1=[1.0, 1.0, 1.0, -1.0]),
        mask("en", 1, a1=[1.0, 1.0, -1.0, -1.0]),
        mask("de", 0, a1=[-1.0, 1.0, -1.0, 1.0]),
        mask("de", 1, a1=[-1.0, -1.0, -1.0, 1.0], f2=[0.5, 3.0], upper_bound=1.0),
    ]
    result = specific_gates(masks, GROUPS)
    assert result["en", "de", "a1"].tolist() == [0]
    assert result["de", "en", "a1"].tolist() == []
    rows = {(r.keeps, r.prunes, r.layer, r.module): r for r in specific_rows("e", result, GROUPS)}
    assert (rows["en", "de", 1, "attention"].gates, rows["en", "de", 1, "attention"].of) == (1, 4)
    assert rows["en", "de", None, "all"].parameters == 3


# The whole measurement

RECIPE = """
title = "Gates"

[[measure]]
name = "language-gates"
corpus = "rawtext"
languages = ["qaa", "qab"]
split = "train"
examples = 40
attention = "head"
feed_forward = "neuron"
steps = 2
draws = 2
batch_subwords = 64
block = 16
"""


@pytest.fixture(scope="module")
def gate_record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gates")
    result = isogloss.run(tiny(folder, RECIPE), out=folder / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    (record,) = result.records
    return record, read_masks(folder / "runs" / record.id / "masks.safetensors")


@pytest.mark.slow
def test_a_measurement_leaves_masks_that_its_rows_agree_with(gate_record):
    record, masks = gate_record
    assert [(item.language, item.draw) for item in masks] == [("qaa", 0), ("qaa", 1), ("qab", 0), ("qab", 1)]
    assert {(item.kinds.attention, item.kinds.feed_forward) for item in masks} == {("head", "neuron")}
    similar_rows = [item for item in record.rows if "cosine" in item]
    assert len(similar_rows) == 6 * (4 * 2 + 3)
    first_mask, *_, last_mask = masks
    expected = gate_cosine(
        *(item.log_alpha["layer.3.feed-forward.neurons"] for item in (first_mask, last_mask))
    )
    (cosine,) = [
        similar_row["cosine"]
        for similar_row in similar_rows
        if (
            similar_row["first"],
            similar_row["first_draw"],
            similar_row["second"],
            similar_row["second_draw"],
        )
        == ("qaa", 0, "qab", 1)
        and (similar_row["layer"], similar_row["module"]) == (3, "feed-forward")
    ]
    assert cosine == pytest.approx(expected)
    assert {item["model"] for item in record.rows} == {identity(record.run["subjects"][0])}


def test_every_language_is_read_whole_and_under_every_mask(gate_record):
    rows = [item for item in gate_record[0].rows if "perplexity" in item]
    masks = [("", None), *((language, draw) for language in ("qaa", "qab") for draw in (0, 1))]
    assert [(item["mask"], item["draw"], item["language"]) for item in rows] == [
        (mask, draw, language) for mask, draw in masks for language in ("qaa", "qab")
    ]
    whole_perplexities = {item["language"]: item["perplexity"] for item in rows if not item["mask"]}
    assert all(item["perplexity"] != whole_perplexities[item["language"]] for item in rows if item["mask"])


def test_the_asked_sparsity_is_reached(gate_record):
    shares = [item["kept"] for item in gate_record[0].rows if "kept" in item and item["module"] == "all"]
    assert len(shares) == 4
    assert all(0.47 < share <= 0.5 for share in shares)


@pytest.mark.parametrize(
    "field",
    [
        {"sparsity": 1.0},
        {"sparsity": 0.0},
        {"attention": "none", "feed_forward": "none"},
        {"block": 4},
        {"batch_subwords": 64, "block": 128},
        {"start": 1.0},
        {"masked": 0.0},
    ],
)
def test_what_cannot_be_learned_is_refused_at_once(field):
    with pytest.raises(ConfigError, match="language-gates:"):
        LanguageGates(**field)


def test_an_unknown_kind_of_gate_is_refused_at_once():
    with pytest.raises(ConfigError, match=r"'heads'.*'head'"):
        LanguageGates(attention="heads")


def test_a_penalty_may_stand_in_for_a_sparsity():
    assert LanguageGates(sparsity=0.0, penalty=1.0).penalty == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old_name", "new_name", "message"),
    [
        ("examples = 40", "examples = 1", r"the text of qaa \(train\) fills . rows of 16 subwords"),
        ("block = 16", "block = 257", r"rows of 257 subwords \(block\), .*\b256\b"),
    ],
)
def test_text_that_does_not_fit_is_an_error_that_says_what_to_do(tmp_path, old_name, new_name, message):
    text = RECIPE.replace("batch_subwords = 64", "batch_subwords = 512").replace(old_name, new_name)
    process = isogloss.run(tiny(tmp_path, text), out=tmp_path / "runs", jobs=1, report=False)
    (why,) = process.outcome.failed.values()
    assert re.search(message, why)


# Encoders that read languages differently

SMALL = {"draws": 1, "steps": 3, "batch_subwords": 64, "block": 16, "attention": "row", "feed_forward": "row"}


def rows_of(folder, diagnostic=None):
    loaded_data = load(folder)
    setting = replace(
        measure_setting([loaded_data], languages=("en", "fr")),
        text=lambda language: iter([TEXT, TEXT.upper() if language == "fr" else TEXT] * 6),
        masked_lm=lambda _: loaded_data,
        precision="float32",
    )
    return (diagnostic or LanguageGates(**SMALL)).measure(setting)


def numbers_of(rows):
    return [value for row in rows for value in as_row(row).values() if isinstance(value, float)]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["feed-forward", "attention", "adapter", "shared-adapter"])
def test_each_languages_own_modules_have_its_gates(bert_folder, tmp_path, kind):
    """Modules that were never trained change nothing. Trained ones change what their language needs."""
    plain_rows = rows_of(bert_folder)
    fresh_rows = rows_of(modular(bert_folder, tmp_path / "fresh", kind, noise=0.0))
    assert numbers_of(fresh_rows) == pytest.approx(numbers_of(plain_rows), abs=1e-4)
    if kind != "shared-adapter":
        distance = rows_of(modular(bert_folder, tmp_path / "apart", kind))
        assert numbers_of(distance) != pytest.approx(numbers_of(plain_rows), abs=1e-2)


def test_pruning_an_encoder_with_modules_prunes_those_of_the_masks_language(bert_folder, tmp_path):
    place = modular(bert_folder, tmp_path / "apart", "feed-forward")
    model = load_masked_lm(place)
    kinds = GateKinds(attention="none", feed_forward="neuron")
    closed_tensors = {group.name: torch.full(group.shape, -1.0) for group in gate_groups(model, kinds)}
    mask = Mask(language="fr", draw=0, kinds=kinds, log_alpha=closed_tensors, above=0.0)
    prune_encoder(place, mask, tmp_path / "pruned")
    pruned_model = load_masked_lm(tmp_path / "pruned")
    zero = {name for name, weight in pruned_model.named_parameters() if bool((weight == 0).all())}
    names_before = {name for name, weight in model.named_parameters() if bool((weight == 0).all())}
    assert len(zero - names_before) >= 3 * 2
    assert zero - names_before <= set(language_parameters(pruned_model, "fr"))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_language_without_a_map_is_refused_and_gates_are_learned_through_maps(bert_folder, tmp_path):
    save_model(*load(bert_folder), tmp_path / "mapped")
    turned_language_map = LanguageMap(torch.eye(32).roll(1, dims=0), torch.zeros(32))
    write_language_maps(LanguageMaps("en", {"fr": turned_language_map}), tmp_path / "mapped")
    plain_rows = rows_of(bert_folder)
    mapped_rows = rows_of(tmp_path / "mapped")
    perplexities = [
        [
            row.perplexity
            for row in rows
            if isinstance(row, MaskPerplexityRow) and (row.mask, row.language) == ("", language)
        ]
        for rows in (plain_rows, mapped_rows)
        for language in ("en", "fr")
    ]
    assert perplexities[0] == perplexities[2]
    assert perplexities[1] != perplexities[3]
    write_language_maps(LanguageMaps("en", {"de": turned_language_map}), tmp_path / "mapped")
    with pytest.raises(ConfigError, match="'fr'"):
        rows_of(tmp_path / "mapped")


@pytest.mark.nightly
@pytest.mark.slow
def test_gradients_of_each_language_are_those_of_its_modules(bert_folder, tmp_path):
    conflict = GradientConflict(batch=4, draws=1)
    place = modular(bert_folder, tmp_path / "apart", "feed-forward")
    assert rows_of(place, conflict) != rows_of(bert_folder, conflict)
