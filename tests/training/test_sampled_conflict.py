"""Gradient conflict watched in training: the weights are those without, to the bit, resumed or not."""

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.run_parts import with_fields
from isogloss.core.runs import Architecture
from isogloss.experiments.execute import method_label
from isogloss.experiments.running import plan_recipe
from isogloss.methods import METHODS
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling
from isogloss.methods.plain import Bilingual, TranslateTrain
from isogloss.training.gradient_conflict import Conflict, ConflictSampling, Pool, sampled_conflict
from isogloss.training.setting import TextSetting
from made_up import SPANS
from tiny import changed, tiny
from trained import equal, weights

WATCHED = Conflict(every=2, batch=4)
METHOD = with_fields(
    MaskedLanguageModelling(),
    steps=8,
    batch_subwords=64,
    block=16,
    learning_rate=5e-3,
    precision="float32",
    checkpoint_every=3,
)


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


def test_pretraining_that_is_watched_gives_the_same_weights_to_the_bit(tmp_path):
    plain, _, alone = METHOD.train(text_setting(tmp_path / "plain"))
    seen, _, fitted = with_fields(METHOD, conflict=WATCHED).train(text_setting(tmp_path / "seen"))
    assert equal(weights(plain), weights(seen))
    assert [row for row in fitted.rows if "cosine" not in row] == alone.rows
    assert steps(fitted.rows) == [2, 4, 6, 8]
    assert pairs(fitted.rows) == {("en", "en"), ("en", "de"), ("de", "de")}
    assert {row["layer"] for row in fitted.rows if "cosine" in row} == {None}
    assert {row["module"] for row in fitted.rows if "cosine" in row} >= {
        "all",
        "attention",
        "feed-forward",
        "head",
    }


def test_pretraining_that_is_watched_and_interrupted_ends_as_if_it_was_not(tmp_path):
    method = with_fields(METHOD, conflict=WATCHED)
    whole, _, fitted = method.train(text_setting(tmp_path / "whole"))
    with pytest.raises(KeyboardInterrupt):
        method.train(text_setting(tmp_path / "again", stop=3))
    again, _, rest = method.train(text_setting(tmp_path / "again"))
    assert equal(weights(whole), weights(again))
    assert fitted.rows == rest.rows


def test_layers_are_watched_when_they_are_asked_for(tmp_path):
    conflict = Conflict(every=8, batch=2, layers=True)
    _, _, fitted = with_fields(METHOD, conflict=conflict).train(text_setting(tmp_path))
    assert {row["layer"] for row in fitted.rows if "cosine" in row} == {None, 1, 2}


# Fine-tuning


def test_fine_tuning_that_is_watched_gives_the_same_weights_to_the_bit(make_setting, tmp_path):
    plain = Bilingual().train(make_setting(target=("de",), folder=tmp_path / "plain"))
    method = Bilingual(conflict=WATCHED)
    seen = method.train(make_setting(target=("de",), folder=tmp_path / "seen"))
    assert equal(weights(plain.model), weights(seen.model))
    assert [row for row in seen.rows if "cosine" not in row] == plain.rows
    assert pairs(seen.rows) == {("en", "en"), ("en", "de"), ("de", "de")}
    assert steps(seen.rows)[:2] == [2, 4]
    assert steps(seen.rows)[-1] == plain.rows[-1]["step"]


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
    class Run:
        method, auxiliary, start, translated = Bilingual(conflict=WATCHED), None, None, None

    assert method_label(Run()) == "bilingual"


@pytest.mark.parametrize(
    ("conflict", "said"),
    [
        ({"every": 0}, r"conflict\.every"),
        ({"batches": 3}, r"conflict\.batches: no such field. Did you mean 'batch'"),
    ],
)
def test_a_recipe_asks_for_it_and_mistakes_are_found_before_anything_runs(tmp_path, conflict, said):
    path, methods = str(tiny(tmp_path)), "grid__method"
    asked = {methods: [{"name": "bilingual", "conflict": {"every": 5, "batch": 8}}], "measure": []}
    runs = plan_recipe(path, changes=changed(**asked)).runs
    assert {run.method for run in runs} == {METHODS["bilingual"](conflict=Conflict(every=5, batch=8))}
    asked[methods][0]["conflict"] = conflict
    with pytest.raises(ConfigError, match=said):
        plan_recipe(path, changes=changed(**asked))


def test_batches_are_of_one_size_in_all_languages():
    asked = {}

    def losses(language, numbers, seed):
        asked.setdefault(language, []).append(len(numbers))
        return [sum(weight.sum() for weight in model.parameters()) * (1 + seed % 3)]

    from transformers import BertConfig, BertForMaskedLM

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertForMaskedLM(BertConfig(**sizes, vocab_size=9))
    rows = sampled_conflict(model, Pool({"en": 100, "de": 7}, losses), ConflictSampling(batch=32, seed=0))
    assert asked == {"en": [3, 3], "de": [3, 3]}
    assert {row["batch"] for row in rows} == {3}
