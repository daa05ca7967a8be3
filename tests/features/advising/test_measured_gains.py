"""Gains of a folder of runs: which scores are paired, which languages count, and what they cost."""

import pytest

from isogloss import advise, measured_gains
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from made_up_runs import SHIPPED, adjust, measure, model, pretrain, scores, small_study, write, write_plan


def write_scored(folder, content, scores_by_language):
    languages = list(scores_by_language)
    names = [write(folder, content)]
    measurement = measure("scores", [content], languages=languages)
    return [*names, write(folder, measurement, scores(content, scores_by_language))]


def of_options(gains):
    return {(gain.option, gain.language): gain for gain in gains}


def test_gains_are_means_over_seeds_of_paired_scores_in_targets(tmp_path):
    small_study(tmp_path, seeds=3)
    [gain] = measured_gains(tmp_path)
    assert (gain.task, gain.option, gain.language, gain.seeds) == ("upos", "bilingual", "qad", 3)
    assert gain.gain == pytest.approx(20)
    assert gain.labels == 160
    assert gain.hours == pytest.approx(1.5 / 3600)


def test_shots_adjusted_encoders_and_other_sources_are_options_with_costs(tmp_path):
    names = []
    for seed in (0, 1):
        base = model(seed=seed)
        few_shot = model("few-shot", target=["qad"], seed=seed, fields={"shots": 20}, start=base)
        on_adjusted = model(seed=seed, encoder=adjust())
        from_other = model(seed=seed, source=["qab"])
        for content, score in ((base, 0.5), (few_shot, 0.6), (on_adjusted, 0.55), (from_other, 0.4)):
            names += write_scored(tmp_path, content, {"qaa": 0.9, "qab": 0.7, "qad": score + seed / 10})
    write_plan(tmp_path, names, labels={identity(adjust()): "adjusted", identity(SHIPPED): "shipped"})
    gains = of_options(measured_gains(tmp_path))
    by_name = {option: gain for (option, language), gain in gains.items() if language == "qad"}
    labels = {option.partition(" (")[0].partition(",")[0]: gain.labels for option, gain in by_name.items()}
    assert labels == {"few-shot": 20, "source-only": 0}
    points = {option: gain.gain for option, gain in by_name.items()}
    assert sorted(points.values()) == pytest.approx([-10, 5, 10])
    adjusted = next(gain for option, gain in by_name.items() if "adjusted" in option)
    assert adjusted.gain == pytest.approx(5)
    from_qab_gain = next(gain for option, gain in by_name.items() if "source qab" in option)
    assert (from_qab_gain.gain, from_qab_gain.seeds) == (pytest.approx(-10), 2)
    assert not any(language == "qaa" for _, language in gains)
    assert from_qab_gain.option not in {option for option, language in gains if language == "qab"}
    assert advise("upos", gains=list(gains.values())).choice is None


def test_hours_are_those_of_all_runs_that_an_option_needed(tmp_path):
    base = model()
    on_adjusted = model(encoder=adjust())
    pretrained = write(tmp_path, pretrain())
    adjusted = write(tmp_path, adjust(), needs=[pretrained])
    names = [pretrained, adjusted]
    for content in (base, on_adjusted):
        names += write_scored(tmp_path, content, {"qad": 0.5})
    write(tmp_path, on_adjusted, needs=[adjusted])
    write_plan(tmp_path, names)
    [gain] = measured_gains(tmp_path)
    assert gain.hours == pytest.approx(2 * 1.5 / 3600)  # The fine-tuning and the adjustment.


def test_a_system_with_all_labels_of_a_target_is_left_out(tmp_path):
    names = write_scored(tmp_path, model(), {"qad": 0.5})
    names += write_scored(tmp_path, model("bilingual", target=["qad"], examples=0), {"qad": 0.8})
    write_plan(tmp_path, names)
    assert measured_gains(tmp_path) == []


def test_seeds_and_languages_without_a_pair_are_left_out(tmp_path):
    names = write_scored(tmp_path, model(seed=0), {"qad": 0.5, "qab": 0.4})
    for seed in (0, 1):
        content = model("few-shot", target=["qad"], seed=seed, fields={"shots": 5})
        names += write_scored(tmp_path, content, {"qad": 0.6, "qac": 0.9})
    write_plan(tmp_path, names)
    [gain] = measured_gains(tmp_path)
    assert (gain.language, gain.seeds, gain.gain) == ("qad", 1, pytest.approx(10))


def test_an_average_is_compared_with_the_mean_of_its_models(tmp_path):
    names = []
    bases = [model(seed=seed) for seed in (0, 1, 2)]
    for base, score in zip(bases, (0.3, 0.6, 0.6), strict=True):
        names += write_scored(tmp_path, base, {"qad": score})
    averaged = {
        "kind": "fine-tune",
        **{name: bases[0][name] for name in ("encoder", "corpus", "task", "source", "optimization", "data")},
        "method": {"kind": "average"},
        "target": [],
        "treebanks": [],
        "examples": 160,
        "seed": 0,
        "parts": bases,
    }
    names += write_scored(tmp_path, averaged, {"qad": 0.55})
    write_plan(tmp_path, names)
    [gain] = measured_gains(tmp_path)
    assert gain.gain == pytest.approx(5)


def test_each_corpus_has_the_baseline_of_its_own_source(tmp_path):
    names = []
    for corpus, source in (("ud", "qaa"), ("masakhapos", "qab")):
        base = model(corpus=corpus, source=[source])
        few_shot = model("few-shot", corpus=corpus, source=[source], target=["qad"], fields={"shots": 5})
        for content, score in ((base, 0.5), (few_shot, 0.6)):
            names.append(write(tmp_path, content))
            names.append(
                write(tmp_path, measure("scores", [content], corpus=corpus), scores(content, {"qad": score}))
            )
    write_plan(tmp_path, names)
    gains = measured_gains(tmp_path)
    assert [(gain.option, gain.gain) for gain in gains] == [("few-shot", pytest.approx(10))]


def test_a_baseline_on_adjusted_encoders_only_is_refused(tmp_path):
    names = write_scored(tmp_path, model(encoder=adjust()), {"qad": 0.5})
    write_plan(tmp_path, names)
    with pytest.raises(ConfigError, match="source-only"):
        measured_gains(tmp_path)


def test_a_folder_without_scores_or_baseline_is_refused(tmp_path):
    small_study(tmp_path / "study")
    with pytest.raises(ConfigError, match=r"'bilingua'.*'bilingual'"):
        measured_gains(tmp_path / "study", against="bilingua")
    write_plan(tmp_path, [write(tmp_path, model())])
    with pytest.raises(ConfigError, match="scores"):
        measured_gains(tmp_path)
