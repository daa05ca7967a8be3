"""Measurements of models and encoders with language modules: each language is read by its own."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import in_translation
from aligned import translations
from isogloss.encoders.loading import load_model
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.landscapes.diagnostic import Deltas, Interpolation, Plane
from isogloss.features.mining.diagnostic import Mining
from isogloss.features.representations.cka import Cka
from isogloss.features.representations.representation_map import RepresentationMap
from isogloss.features.representations.retrieval import Retrieval
from isogloss.features.word_distance.diagnostic import WordDistance
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation, pair_with_translations
from measuring import measure_setting, modular

KINDS = ("feed-forward", "attention", "adapter")
STATES = {
    "cka": Cka(),
    "retrieval": Retrieval(),
    "mining": Mining(),
    "word-distance": WordDistance(layers=(1, -1)),
    "representation-map": RepresentationMap(),
}

saved_modular = partial(modular, load=load_model)


@pytest.fixture
def bitext():
    same_value = [
        replace(translation, second=translation.first, links=tuple((n, n) for n, _ in translation.links))
        for translation in translations(60)
    ]
    return lambda _: list({pair.first: pair for pair in same_value}.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("diagnostic", STATES.values(), ids=STATES)
def test_states_of_each_language_are_those_of_its_modules(diagnostic, kind, bert_folder, bitext, tmp_path):
    """Both sides are one text: where they are read differently, it shows."""

    def rows(folder):
        loaded_models = (load_model(folder), load_tokenizer(folder))
        return diagnostic.measure(measure_setting([loaded_models], languages=("en", "fr"), bitext=bitext))

    plain_rows = rows(bert_folder)
    assert rows(saved_modular(bert_folder, tmp_path / "fresh", kind, noise=0.0)) == plain_rows
    assert rows(saved_modular(bert_folder, tmp_path / "apart", kind, seed=1)) != plain_rows


@pytest.fixture
def heads(bert_folder, tmp_path):
    """Make taggers from encoders with modules."""

    def make_models(kind, *seeds):
        return [
            TASKS["upos"]
            .head(modular(bert_folder, tmp_path / f"{seed}", kind, seed=seed, load=load_model), seed=seed)
            .eval()
            for seed in seeds
        ]

    return make_models


def scorer(folder):
    optimization = in_translation.setting("upos", folder, folder).optimization
    tokenizer = load_tokenizer(folder)
    return lambda language: evaluation(
        TASKS["upos"], in_translation.sentences("en", 12), tokenizer, optimization, language=language
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_path_between_two_models_has_them_at_its_ends_in_every_language(kind, heads, bert_folder):
    first_model, second = heads(kind, 1, 2)
    own_scorer = scorer(bert_folder)
    expected = {
        (item, language): own_scorer(language).score(model)
        for item, model in ((0, first_model), (1, second))
        for language in ("en", "fr")
    }
    setting = measure_setting([first_model, second], own_scorer, languages=("en", "fr"))
    rows = Interpolation(between=("a", "b"), alphas=(0.0, 0.5, 1.0)).measure(setting)
    ends = {(row.alpha, row.language): row.score for row in rows if row.alpha != 0.5}
    assert ends == expected
    assert len(rows) == 6


@pytest.mark.nightly
@pytest.mark.slow
def test_a_plane_and_deltas_see_every_parameter(heads, bert_folder):
    models = heads("adapter", 1, 2, 3)
    setting = measure_setting(models, scorer(bert_folder), languages=("en", "fr"))
    assert len(Plane(between=("a", "b", "c"), alphas=(0.0, 1.0)).measure(setting)) == 8
    (whole_measurement, encoder, _) = Deltas(between=("a", "b", "c")).measure(setting)
    moved_totals = [
        sum(
            float((x - y).detach().double().square().sum())
            for x, y in zip(model.parameters(), models[0].parameters(), strict=True)
        )
        for model in models[1:]
    ]
    assert whole_measurement.norm_first == pytest.approx(moved_totals[0] ** 0.5)
    assert whole_measurement.norm_second == pytest.approx(moved_totals[1] ** 0.5)
    assert 0 < encoder.norm_first < whole_measurement.norm_first


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_scored_with_each_sides_modules(kind, bert_folder, tmp_path):
    """A translation that is the text itself, mixed with ratio 0, changes nothing in tagging."""
    model = TASKS["upos"].head(saved_modular(bert_folder, tmp_path / "m", kind, seed=1), seed=0).eval()
    optimization = in_translation.setting("upos", bert_folder, tmp_path).optimization
    tokenizer = load_tokenizer(bert_folder)
    examples = in_translation.sentences("en", 12)
    own_evaluation = evaluation(TASKS["upos"], examples, tokenizer, optimization, language="fr")

    def scores(largest):
        mixup = Mixup(layer=1, ratio=largest, learned=False)
        pairs = pair_with_translations(
            own_evaluation, examples, tokenizer, optimization, mixup=mixup, source="en"
        )
        return torch.cat(pairs.scores(model))

    torch.testing.assert_close(scores(0.0), torch.cat(own_evaluation.scores(model)), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(scores(0.5), scores(0.0), atol=1e-3)
