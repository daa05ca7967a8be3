"""Nearest sources of an encoder: equal to the function, each language a target once, in recipes."""

from dataclasses import replace

import pytest

import isogloss
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.data.examples import TaggedSentence
from isogloss.features.choosing.nearest_sources_diagnostic import NearestSources
from isogloss.runs.measure import Measure
from measuring import WORDS, measure_setting
from says import says

LANGUAGES = ("en", "de", "fr")
RECIPE = """
title = "Nearest"
encoder = "shipped"

[[measure]]
name = "nearest-sources"
corpus = "ud"
languages = ["qaa", "qab", "qad"]
"""


def read_sentences(language):
    start = LANGUAGES.index(language)
    return [
        TaggedSentence(id=str(index), words=tuple(WORDS[start + index : start + index + 4]), tags=())
        for index in range(6)
    ]


def setting(encoder, read=read_sentences):
    return replace(
        measure_setting([encoder], languages=LANGUAGES), examples=read, precision="float32", split="train"
    )


@pytest.mark.slow
def test_rows_are_what_the_function_returns(loaded_encoder):
    rows = NearestSources(neighbours=2).measure(setting(loaded_encoder))
    states = {
        language: isogloss.states(
            *loaded_encoder, [x.words for x in read_sentences(language)], words="first", layers=[-1]
        )
        for language in LANGUAGES
    }
    for target in LANGUAGES:
        candidates = {language: states[language] for language in LANGUAGES if language != target}
        ranking = isogloss.rank_sources_by_states(states[target], candidates, neighbours=2)
        found = [(row.candidate, row.share, row.behind) for row in rows if row.language == target]
        assert found == [(row.language, row.share, row.behind) for row in ranking]
    assert {row.items for row in rows} == {24}
    assert all(not row.chosen for row in rows if row.behind > 0)


def test_too_few_words_and_a_missing_layer_are_refused(loaded_encoder):
    def read_one(language):
        return [TaggedSentence(id="0", words=(language,), tags=())]

    with says(DataError, "1 items", "5"):
        NearestSources().measure(setting(loaded_encoder, read_one))
    with says((ConfigError, ModelError), "nearest-sources", "en", "99"):
        NearestSources(layer=99).measure(setting(loaded_encoder))


def test_a_recipe_measures_every_encoder_on_a_corpus_of_a_task(plan, get_refusal):
    (measurement,) = [run for run in plan(RECIPE) if isinstance(run, Measure)]
    read = [(split.corpus, split.language, split.split) for split in measurement.splits_read]
    assert read == [("ud", language, "dev") for language in ("qaa", "qab", "qad")]
    message = get_refusal(RECIPE.replace('"ud"', '"bitext"'))
    assert "bitext" in message and "labels" in message
    assert "corpus" in get_refusal(RECIPE.replace('corpus = "ud"', ""))
    assert "neighbours" in get_refusal(RECIPE + "neighbours = 0")
