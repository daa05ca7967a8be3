"""Means by kind of language: over languages within a seed, then over seeds, including every target."""

from statistics import fmean

import pandas as pd
import pytest
from scipy.stats import t

from isogloss.features.language_groups.report import ALL, group_tables, language_groups
from isogloss.reports.score_tables import score_tables
from isogloss.reports.scores import MEAN
from made_up_rows import make_measurements
from made_up_studies import MODEL, adjusted_facts

SCORES = {
    "en": (0.80, 0.82, 0.84),
    "de": (0.70, 0.74, 0.72),
    "fi": (0.60, 0.61, 0.68),
    "ru": (0.50, 0.54, 0.52),
    "hu": (0.40, 0.45, 0.44),
    "ary": (0.30, 0.30, 0.33),
}
KINDS = {
    ("family", "Afro-Asiatic"): "ary",
    ("family", "Indo-European"): "de ru",
    ("family", "Uralic"): "fi hu",
    ("script", "Arab"): "ary",
    ("script", "Cyrl"): "ru",
    ("script", "Latn"): "de fi hu",
    ("resources", "4"): "fi hu ru",
    ("resources", "5"): "de",
    ("resources", "unknown"): "ary",
    ALL: "ary de fi hu ru",
}


def rows(scores=SCORES, **facts):
    options = {**MODEL, "corpus": "xnli", "source": "en", "baseline": None, **facts}
    return [
        {**options, "run": f"{options['encoder']}{seed}", "model": f"{options['encoder']}{seed}"}
        | {"seed": seed, "language": language, "score": score}
        for language, own_score in scores.items()
        for seed, score in enumerate(own_score)
    ]


def test_means_are_over_languages_within_a_seed_and_intervals_over_seeds():
    (table,) = group_tables(make_measurements(scores=rows()))
    row = table.data.set_index(["by", "group"])
    assert dict(row["codes"]) == KINDS
    assert dict(row["languages"]) == {group: len(codes.split()) for group, codes in KINDS.items()}
    for group, codes in KINDS.items():
        means = [fmean(SCORES[language][seed] for language in codes.split()) for seed in range(3)]
        error = pd.Series(means).sem()
        low, high = t.interval(0.95, 2, fmean(means), error)
        assert list(row.loc[group, ["mean", "low", "high"]]) == pytest.approx([fmean(means), low, high])
    uralic = next(row for row in table.rows if row[1].text == "Uralic")
    # (.60+.40)/2, (.61+.45)/2, (.68+.44)/2: mean 53.0, error 1.732, times t of two degrees of freedom, 4.303
    assert [cell.text for cell in uralic] == ["family", "Uralic", "2", "53.0 [45.5, 60.5]"]


def test_languages_that_differ_do_not_widen_an_interval():
    level = {language: (0.2 + place / 10,) * 3 for place, language in enumerate(SCORES)}
    (table,) = group_tables(make_measurements(scores=rows(level)))
    assert (table.data["high"] - table.data["low"]).abs().max() < 1e-12


def test_the_mean_of_all_is_that_of_the_table_of_scores():
    reversed_rows = rows({language: score[::-1] for language, score in SCORES.items()}, **adjusted_facts())
    measurements = make_measurements(scores=[*rows(), *reversed_rows])
    (table,) = group_tables(measurements)
    scores = score_tables(measurements)[0].data
    row = table.data[table.data["by"] == "all"]
    expected = scores[scores["column"] == MEAN]
    assert list(row["name"]) == list(expected["name"])
    assert list(row["mean"]) == pytest.approx(list(expected["mean"]))
    assert list(row["std"]) == pytest.approx(list(expected["std"]))


def test_a_seed_without_a_language_does_not_count_in_its_groups():
    measurements = make_measurements(
        scores=[row for row in rows() if (row["language"], row["seed"]) != ("hu", 2)]
    )
    units = group_tables(measurements)[0].data.set_index(["by", "group"])["units"]
    assert dict(units) == {group: 2 if "hu" in codes else 3 for group, codes in KINDS.items()}


def test_one_seed_has_no_interval_and_says_so():
    (table,) = group_tables(
        make_measurements(scores=rows({language: score[:1] for language, score in SCORES.items()}))
    )
    assert table.data["low"].isna().all()
    assert "One seed has no interval." in table.caption
    assert [cell.text for cell in table.rows[-1]] == ["all", "", "5", "50.0"]


def test_what_is_unknown_and_what_does_not_count_is_said():
    made_for = rows(target="de+fi+ary", method="bilingual", way="bilingual")
    (table,) = group_tables(make_measurements(scores=[*rows(), *made_for]))
    assert "Unknown: resources of ary." in table.caption
    assert "Not counted: Hungarian (hu) and Russian (ru), for which no model was made." in table.caption
    assert table.data.set_index(["by", "group"]).loc[ALL, "codes"].unique().tolist() == ["ary de fi"]


def test_the_best_system_of_a_group_is_highlighted():
    better = {language: tuple(item + 0.1 for item in own_score) for language, own_score in SCORES.items()}
    (table,) = group_tables(make_measurements(scores=[*rows(), *rows(better, **adjusted_facts())]))
    assert {(plain_row.mark, best_row.mark) for *_, plain_row, best_row in table.rows} == {("", "best")}


@pytest.mark.parametrize(
    "scores",
    [
        {"qaa": (0.8, 0.8), "qab": (0.7, 0.7), "qac": (0.6, 0.6)},
        {"en": (0.8, 0.8), "de": (0.7, 0.7)},
        {"en": (0.8, 0.8)},
    ],
)
def test_built_in_languages_and_single_targets_have_no_groups(scores):
    assert group_tables(make_measurements(scores=rows(scores, source=next(iter(scores))))) == []


def test_every_language_is_in_one_group_of_each_kind():
    codes = ["sw", "swh_Latn", "zho_Hans", "zh_Hant", "tlh", "sr_Latn", "sr", "eu", "xx"]
    fields = language_groups(codes)
    for kind in ("family", "script", "resources"):
        own_part = [language for (name, _), group in fields.items() if name == kind for language in group]
        assert sorted(own_part) == sorted(codes)
    assert fields["script", "unknown"] == fields["family", "unknown"] == ("tlh", "xx")
    assert fields["family", "Atlantic-Congo"] == ("sw", "swh_Latn")
