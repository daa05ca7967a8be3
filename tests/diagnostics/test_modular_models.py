"""Measurements of models and encoders with language modules: each language is read by its own."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from measuring import measure_setting, modular

import in_translation
from aligned import translations
from isogloss.diagnostics.cka import Cka
from isogloss.diagnostics.mining import Mining
from isogloss.diagnostics.representation_map import RepresentationMap
from isogloss.diagnostics.retrieval import Retrieval
from isogloss.diagnostics.weight_space import Deltas, Interpolation, Plane
from isogloss.diagnostics.word_distance import WordDistance
from isogloss.encoders.loading import load_model
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation, pair_with_translations

KINDS = ("feed-forward", "attention", "adapter")
STATES = {
    "cka": Cka(),
    "retrieval": Retrieval(),
    "mining": Mining(),
    "word-distance": WordDistance(layers=(1, -1)),
    "representation-map": RepresentationMap(),
}

saved = partial(modular, load=load_model)


@pytest.fixture
def bitext():
    same = [
        replace(one, second=one.first, links=tuple((n, n) for n, _ in one.links)) for one in translations(60)
    ]
    return lambda _: list({one.first: one for one in same}.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("diagnostic", STATES.values(), ids=STATES)
def test_states_of_each_language_are_those_of_its_modules(diagnostic, kind, bert_folder, bitext, tmp_path):
    """Both sides are one text: where they are read differently, it shows."""

    def rows(folder):
        loaded = (load_model(folder), load_tokenizer(folder))
        return diagnostic.measure(measure_setting([loaded], languages=("en", "fr"), bitext=bitext))

    plain = rows(bert_folder)
    assert rows(saved(bert_folder, tmp_path / "fresh", kind, noise=0.0)) == plain
    assert rows(saved(bert_folder, tmp_path / "apart", kind, seed=1)) != plain


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
    how = in_translation.setting("upos", folder, folder).optimization
    tokenizer = load_tokenizer(folder)
    return lambda language: evaluation(
        TASKS["upos"], in_translation.sentences("en", 12), tokenizer, how, language=language
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_path_between_two_models_has_them_at_its_ends_in_every_language(kind, heads, bert_folder):
    first, second = heads(kind, 1, 2)
    own = scorer(bert_folder)
    expected = {
        (one, code): own(code).score(model)
        for one, model in ((0, first), (1, second))
        for code in ("en", "fr")
    }
    setting = measure_setting([first, second], own, languages=("en", "fr"))
    rows = Interpolation(between=("a", "b"), alphas=(0.0, 0.5, 1.0)).measure(setting)
    ends = {(row.alpha, row.language): row.score for row in rows if row.alpha != 0.5}
    assert ends == expected
    assert len(rows) == 6


@pytest.mark.slow
def test_a_plane_and_deltas_see_every_parameter(heads, bert_folder):
    models = heads("adapter", 1, 2, 3)
    setting = measure_setting(models, scorer(bert_folder), languages=("en", "fr"))
    assert len(Plane(between=("a", "b", "c"), alphas=(0.0, 1.0)).measure(setting)) == 8
    (whole, encoder, _) = Deltas(between=("a", "b", "c")).measure(setting)
    moved = [
        sum(
            float((x - y).detach().double().square().sum())
            for x, y in zip(one.parameters(), models[0].parameters(), strict=True)
        )
        for one in models[1:]
    ]
    assert whole.norm_first == pytest.approx(moved[0] ** 0.5)
    assert whole.norm_second == pytest.approx(moved[1] ** 0.5)
    assert 0 < encoder.norm_first < whole.norm_first


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_scored_with_each_sides_modules(kind, bert_folder, tmp_path):
    """A translation that is the text itself, mixed with ratio 0, changes nothing in tagging."""
    model = TASKS["upos"].head(saved(bert_folder, tmp_path / "m", kind, seed=1), seed=0).eval()
    how = in_translation.setting("upos", bert_folder, tmp_path).optimization
    tokenizer, examples = load_tokenizer(bert_folder), in_translation.sentences("en", 12)
    own = evaluation(TASKS["upos"], examples, tokenizer, how, language="fr")

    def scores(largest):
        mixup = Mixup(layer=1, ratio=largest, learned=False)
        paired = pair_with_translations(own, examples, tokenizer, how, mixup=mixup, source="en")
        return torch.cat(paired.scores(model))

    torch.testing.assert_close(scores(0.0), torch.cat(own.scores(model)), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(scores(0.5), scores(0.0), atol=1e-3)
