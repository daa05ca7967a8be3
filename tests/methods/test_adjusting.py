"""Eq. 1 is what it says, for every family and choice, exact and resumable; it draws translations together."""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import product

import pytest
import torch

from aligned import Slowly, load_in_float64, translations
from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.loading import load_model, load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.aligned_batches import (
    aligned_batch,
    alignment_terms,
    frozen_copy,
    states_of,
)
from isogloss.features.adjustment.methods import ContrastiveAlignment, CrossLingualAdjustment
from isogloss.features.alignment.subwords import in_subwords
from isogloss.features.built_in_languages import translations as built_in
from isogloss.training.bitext import PairEncoding, read_bitext
from isogloss.training.setting import AdjustSetting
from trained import equal, weights

EXACT = with_fields(CrossLingualAdjustment(), precision="float32", batch_size=4, learning_rate=1e-3)


@pytest.fixture
def setting(bert_folder, tmp_path):
    pairs = {"en-xx": translations(24)}
    return AdjustSetting(start=str(bert_folder), bitext=pairs, folder=tmp_path / "work", seed=0)


def batch_of(folder, pairs, **encoding):
    bitext = read_bitext({"en-xx": pairs}, load_tokenizer(folder), PairEncoding(**encoding))
    return aligned_batch(bitext, range(len(bitext)))


def equation_1(folder, pairs, *, form="sum", **encoding):
    """Return Eq. 1 as it is trained on, of a model that has moved a little, and that model."""
    model = load_whole(folder, attention="eager").eval()
    original = frozen_copy(model)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.05)
    method = with_fields(CrossLingualAdjustment(), form=form, stay=0.7, **encoding)
    return method.loss(model, original, batch_of(folder, pairs, **encoding)), model


def adjust_slowly(folder, moved_alignment, pairs, *, form="sum", pulled_value="all", **options):
    """Return the same with two models, one sentence at a time."""
    model = load_in_float64(folder)
    model.load_state_dict({name: value.double() for name, value in moved_alignment.state_dict().items()})
    return Slowly(folder, aligned=pulled_value, **options).equation_1(
        model, load_in_float64(folder), pairs, form=form, stay=0.7
    ), model


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sum", "mean"])
def test_equation_1_is_that_of_two_models_in_every_family(encoder_folder, form):
    pairs = translations(5)
    ours, moved_alignment = equation_1(encoder_folder, pairs, form=form)
    theirs, model = adjust_slowly(encoder_folder, moved_alignment, pairs, form=form)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-6)
    ours.backward()
    theirs.backward()
    grads = {name: weight.grad for name, weight in model.named_parameters()}
    scale = max(float(grad.abs().max()) for grad in grads.values() if grad is not None)
    for name, tensor in each(moved_alignment.named_parameters()):
        other_grad = grads[name]
        assert (tensor.grad is None) == (other_grad is None), name
        if other_grad is not None:
            torch.testing.assert_close(tensor.grad.double(), other_grad, rtol=1e-3, atol=1e-5 * scale)


def test_linked_subwords_come_together_by_their_own_links(bert_folder):
    """Links of all subwords of linked words are what those words' subwords are, each for itself."""
    tokenizer = load_tokenizer(bert_folder)
    pairs = translations(12, seed=3)
    cut = in_subwords(pairs, tokenizer)
    assert all(item.links is None for item in cut) and any(
        len(sentence.words[1]) > len(sentence.second.split()) for sentence in cut
    )
    linked_pairs = []
    for pair in pairs:
        sides = [
            [
                [index for index, owner in enumerate(split.words) if owner == word]
                for word in range(split.words[-1] + 1)
            ]
            for split in split_words([pair.first.split(), pair.second.split()], tokenizer)
        ]
        links = {link for i, j in pair.links for link in product(sides[0][i], sides[1][j])}
        linked_pairs.append(replace(pair, links=tuple(sorted(links))))
    ours = read_bitext({"en-xx": linked_pairs}, tokenizer, PairEncoding(word="aligned-subwords"))
    theirs = read_bitext({"en-xx": pairs}, tokenizer, PairEncoding(word="subwords"))
    for row in range(len(pairs)):
        assert (ours[row].anchored == theirs[row].anchored).all()
        assert {tuple(element) for element in ours[row].aligned} == {
            tuple(element) for element in theirs[row].aligned
        }
    far_pairs = [replace(pairs[0], links=((len(cut[0].words[0]), 0),))]
    with pytest.raises(DataError, match="Align"):
        read_bitext({"en-xx": far_pairs}, tokenizer, PairEncoding(word="aligned-subwords"))


@pytest.mark.parametrize(
    "options",
    [
        {"word": "first"},
        {"word": "last"},
        {"word": "subwords"},
        {"pulled": "words"},
        {"pulled": "special"},
        {"pulled": "opening"},
        {"drop_identical": True},
        {"layer": 0},
        {"layer": 2},
        {"word": "subwords", "pulled": "words", "layer": 1},
    ],
    ids=str,
)
@pytest.mark.slow
def test_equation_1_with_every_choice_is_that_of_two_models(bert_folder, options):
    pairs = translations(5, seed=1)
    ours, moved_alignment = equation_1(bert_folder, pairs, **options)
    theirs, _ = adjust_slowly(bert_folder, moved_alignment, pairs, **options)
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.nightly
@pytest.mark.slow
def test_padding_and_order_change_nothing(bert_folder):
    long_translations = translations(1, seed=7, longest=20)
    joint_alignments, _ = equation_1(bert_folder, [*translations(6), *long_translations])
    back, _ = equation_1(bert_folder, [*long_translations, *reversed(translations(6))])
    single_alignments = [equation_1(bert_folder, [translation])[0] for translation in list(translations(6))]
    single_alignments.append(equation_1(bert_folder, long_translations)[0])
    torch.testing.assert_close(joint_alignments, back, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(joint_alignments, sum(single_alignments), rtol=1e-5, atol=1e-5)


def test_what_is_saved_has_all_the_start_had(encoder_folder, setting, tmp_path):
    from safetensors.torch import load_file

    adjusted_training = with_fields(EXACT, epochs=0).train(replace(setting, start=str(encoder_folder)))
    save_model(adjusted_training.model, adjusted_training.tokenizer, tmp_path / "saved")
    file_before, file_after = (
        load_file(folder / "model.safetensors") for folder in (encoder_folder, tmp_path / "saved")
    )
    assert file_before.keys() == file_after.keys()
    assert all(torch.equal(file_before[name], file_after[name]) for name in file_before)


def test_a_pooler_is_kept_beside_the_masked_lm_head(tmp_path, bert_folder, setting):
    from safetensors.torch import load_file
    from transformers import BertForPreTraining

    BertForPreTraining.from_pretrained(bert_folder).save_pretrained(tmp_path / "whole")
    load_tokenizer(bert_folder).save_pretrained(tmp_path / "whole")
    adjusted_training = with_fields(EXACT, epochs=0).train(replace(setting, start=str(tmp_path / "whole")))
    save_model(adjusted_training.model, adjusted_training.tokenizer, tmp_path / "saved")
    file_before, file_after = (
        load_file(tmp_path / name / "model.safetensors") for name in ("whole", "saved")
    )
    assert torch.equal(file_before["bert.pooler.dense.weight"], file_after["bert.pooler.dense.weight"])
    assert "cls.predictions.bias" in file_after


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_every_family(encoder_folder, setting):
    near_and_near_the_start(encoder_folder, setting, precision="float32")


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_in_bfloat16(bert_folder, setting):
    near_and_near_the_start(bert_folder, setting, precision="bfloat16")


def near_and_near_the_start(folder, setting, *, precision):
    method = with_fields(EXACT, epochs=4, precision=precision, batch_size=8, dropout=False)
    moved_model = method.train(replace(setting, start=str(folder))).model
    alignment_terms_before, alignment_terms_after = (
        equation_1_of(model, folder, setting) for model in (load_model(folder), moved_model)
    )
    assert alignment_terms_after.aligned < 0.8 * alignment_terms_before.aligned
    assert (
        alignment_terms_after.anchored < alignment_terms_before.aligned - alignment_terms_after.aligned
    )  # Less is moved than is gained.


def equation_1_of(model, folder, setting):
    """Return both terms of a model against the encoder as it was."""
    batch = batch_of(folder, setting.bitext["en-xx"])
    with torch.no_grad():
        return alignment_terms(model, frozen_copy(load_model(folder)), batch, layer=-1, form="mean")


@pytest.mark.slow
def test_layers_above_the_adjusted_one_keep_their_weights(setting, bert_folder):
    moved_weights = weights(with_fields(EXACT, layer=1).train(setting).model)
    start = weights(load_whole(bert_folder))
    changed_names = {name for name in start if not torch.equal(start[name], moved_weights[name])}
    assert any(".layer.0." in name for name in changed_names)
    assert not any(".layer.1." in name or ".layer.2." in name for name in changed_names)


@pytest.mark.slow
def test_dropout_is_a_choice(setting, tmp_path):
    runs = [
        with_fields(EXACT, dropout=dropout).train(replace(setting, folder=tmp_path / name, seed=seed))
        for name, dropout, seed in (("a", False, 0), ("b", False, 0), ("c", True, 0))
    ]
    assert equal(runs[0].model, runs[1].model)
    assert not equal(runs[0].model, runs[2].model)
    assert not any(part.training for run in runs for part in run.model.modules())


def test_the_encoder_as_it_was_is_never_trained_and_has_no_dropout(bert_folder):
    model = load_whole(bert_folder).train()
    original = frozen_copy(model)
    start = weights(load_model(bert_folder))
    assert not original.training and not any(parameter.requires_grad for parameter in original.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters()) and model.training
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.05)
    assert all(torch.equal(item, start[name]) for name, item in each(weights(original).items()))


@pytest.mark.slow
def test_without_a_step_nothing_has_moved(bert_folder):
    model = load_whole(bert_folder).eval()
    batch = batch_of(bert_folder, translations(6))
    with torch.no_grad():
        terms = alignment_terms(model, frozen_copy(model), batch, layer=-1, form="mean")
    assert float(terms.anchored) < 1e-10 < float(terms.aligned)


def test_several_pairs_of_languages_are_adjusted_together(setting):
    pair = {"en-xx": translations(10), "en-yy": translations(6, seed=3)}
    adjusted_training = EXACT.train(replace(setting, bitext=pair))
    assert [(row["pair"], row["translations"]) for row in adjusted_training.rows[:2]] == [
        ("en-xx", 10),
        ("en-yy", 6),
    ]
    assert adjusted_training.rows[-1]["step"] == 3 + 2  # A batch holds one pair of languages.


def test_pairs_that_are_empty_or_too_long_are_left_out_and_counted(setting):
    too_long = Translation(id="long", first="cat " * 30, second="tac", links=())
    endless = Translation(id="endless", first="cat", second=" ".join(["atat" * 5] * 15), links=((0, 0),))
    empty_translation = Translation(id="empty", first="", second="tac", links=())
    adjusted_training = with_fields(EXACT, longest=20).train(
        replace(setting, bitext={"en-xx": [*translations(4), too_long, endless, empty_translation]})
    )
    assert adjusted_training.rows[0]["left_out"] == 3
    (warning,) = adjusted_training.warnings
    assert warning.startswith("en-xx: ") and "3 of 7" in warning


def test_bitext_without_links_is_refused(setting):
    plain_translation = Translation(id="7", first="a cat", second="tac a")
    with pytest.raises(DataError, match="en-xx, translation '7':"):
        EXACT.train(replace(setting, bitext={"en-xx": [plain_translation]}))
    with pytest.raises(DataError, match=r"0-5.*2.*2"):
        EXACT.train(replace(setting, bitext={"en-xx": [replace(plain_translation, links=((0, 5),))]}))


def test_a_layer_that_is_not_there_is_refused(setting):
    with pytest.raises(ConfigError, match=r"no layer 9: .*encoder.*3"):
        with_fields(EXACT, layer=9).train(setting)


SHIPPED = str(files("isogloss") / "shipped")


@pytest.fixture(scope="module")
def sentences():
    drawn_built = built_in("qaa", "qac", "train")
    return [item for item, _ in zip(drawn_built, range(400), strict=False)]


@pytest.fixture(scope="module")
def held_out_distances(sentences, tmp_path_factory):
    """Return the distances in held-out text, once for the encoder as shipped and for each method."""

    @cache
    def measure_method(method=None):
        if method is None:
            return distances(load_model(SHIPPED), sentences[320:])
        bitext = {"qaa-qac": sentences[:320]}
        folder = tmp_path_factory.mktemp("adjusting")
        setting = AdjustSetting(start=SHIPPED, bitext=bitext, folder=folder, seed=0)
        return distances(method.train(setting).model, sentences[320:])

    return measure_method


def distances(model, pairs):
    """Return the mean distance of linked words, and of words that are not translations of each other."""
    batch = batch_of(SHIPPED, pairs, pulled="words")
    with torch.no_grad():
        states = states_of(model, batch.passes, layer=-1)
        source = batch.source.of(states)
        target = batch.target.of(states)
    interval = torch.cdist(source, target)
    return float(interval.diagonal().mean()), float(interval[~batch.same()].mean()), source


QUICKLY = with_fields(CrossLingualAdjustment(), learning_rate=5e-4, precision="float32")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        QUICKLY,
        with_fields(QUICKLY, form="mean"),
        with_fields(ContrastiveAlignment(), learning_rate=5e-4, precision="float32", stay=1.0),
    ],
    ids=["sum", "mean", "contrastive"],
)
def test_related_words_come_nearer_than_unrelated_ones_do(method, held_out_distances):
    near_distance, far_distance, source = held_out_distances()
    nearer, farther, distance_after = held_out_distances(method)
    assert nearer < 0.9 * near_distance
    assert nearer / farther < 0.95 * near_distance / far_distance
    assert (
        float((distance_after - source).norm(dim=1).mean()) < 0.7 * near_distance
    )  # The source moved less than was between.


@pytest.mark.nightly
@pytest.mark.slow
def test_holding_the_source_keeps_it_nearer_to_where_it_was(held_out_distances):
    held_mean, free_mean = (
        float((held_out_distances(item)[2] - held_out_distances()[2]).norm(dim=1).mean())
        for item in (QUICKLY, with_fields(QUICKLY, stay=0.0))
    )
    assert held_mean < 0.8 * free_mean
