import pytest

from isogloss.features.claims.four_papers import CLAIMS as ALL
from isogloss.reports.verdicts import check_rows, judge
from made_up_rows import make_measurements
from made_up_studies import (
    CONTINUAL,
    DOWN,
    ENCODER,
    FLAT,
    NOISY,
    UP,
    Judged,
    Rows,
    adjusted_facts,
    distances,
    gains,
    old_claim,
    scores,
)

CLAIMS = [claim for claim in ALL if claim.id[0] == "3"]


def gains_of_tasks(
    nli: tuple[float, ...], ner: tuple[float, ...], qa: tuple[float, ...] | None = FLAT
) -> Rows:
    return [*gains("nli", nli), *gains("ner", ner), *(gains("qa", qa) if qa else [])]


def scores_by_size(task: str, end: tuple[float, ...]) -> Rows:
    parts = [
        scores([k * item for item in (*end, *end)], task=task, **adjusted_facts(size))
        for k, size in enumerate((5, 30, 250))
    ]
    return [row for part in parts for row in part]


def fine_tuned(change: tuple[float, ...], tasks: tuple[str, ...] = ("nli", "ner", "qa")) -> Rows:
    distances_before = distances("", (0.0,), **ENCODER)
    return [*distances_before, *(row for task in tasks for row in distances(task, change))]


def continual(auc: tuple[float, ...], gain: tuple[float, ...], tasks: tuple[str, ...]) -> dict[str, Rows]:
    plain_adjusted_facts = adjusted_facts()
    kept_values = {**adjusted_facts(), **CONTINUAL}
    none = [0.0] * len(auc)
    return {
        "scores": [row for task in tasks
                   for item, options in ((none, plain_adjusted_facts), (gain, kept_values))
                   for row in scores(item, task=task, **options)],
        "word_distance": [row for task in ("nli", "ner", "qa")
                          for item, options in ((none, plain_adjusted_facts), (auc, kept_values))
                          for row in distances(task, none, item, **options)],
    }  # fmt: skip


def mixup_scores(nli: tuple[float, ...], qa: tuple[float, ...] | None = UP) -> Rows:
    fields = {"mixed": ("nli", nli)}
    if qa:
        fields |= {"mixed-question": ("qa", qa), "mixed-passage": ("qa", qa)}
    plain_rows = [row for task in ("nli", "qa") for row in gains(task, FLAT)]
    return [
        *plain_rows,
        *(row for name, (task, gain) in fields.items() for row in gains(task, gain, inputs=name)),
    ]


def spanish(ner: tuple[float, ...], qa: tuple[float, ...]) -> Rows:
    es = {"source": "en", "language": "es", "encoder.pairs": "en-es"}
    return [*gains("ner", ner, **es), *gains("qa", qa, **es)]


def home_gains(qa: tuple[float, ...] | None, nli: tuple[float, ...] = FLAT) -> Rows:
    return [*gains("nli", nli, language="qaa"), *(gains("qa", qa, language="qaa") if qa else [])]


def opening(nli: tuple[float, ...], ner: tuple[float, ...] | None = UP) -> Rows:
    tasks = {"nli": nli}
    if ner:
        tasks["ner"] = ner
    return [
        row
        for task, gain in tasks.items()
        for item, pulled_language in ((gain, "all"), ([0.0] * 5, "opening"))
        for row in scores(item, task=task, **adjusted_facts(pulled=pulled_language))
    ]


CASES = [
    ("3a", {"scores": gains_of_tasks(UP, UP)}, "supported"),
    ("3a", {"scores": gains_of_tasks(UP, DOWN)}, "mixed"),
    ("3a", {"scores": gains_of_tasks(UP, NOISY)}, "undecided"),
    ("3a", {"scores": gains_of_tasks(UP, UP, UP)}, "differs from print"),
    ("3b", {"scores": [*scores_by_size("nli", UP), *scores_by_size("ner", UP)]}, "supported"),
    ("3b", {"scores": [*scores_by_size("nli", UP), *scores_by_size("ner", DOWN)]}, "mixed"),
    ("3b", {"scores": scores_by_size("nli", UP)}, "not tested"),
    ("3d", continual(UP, UP, ("nli",)), "supported"),
    ("3d", continual(UP, DOWN, ("nli",)), "mixed"),
    ("3d", continual(UP, NOISY, ("nli",)), "undecided"),
    ("3e", {"scores": mixup_scores(UP)}, "supported"),
    ("3e", {"scores": mixup_scores(DOWN)}, "mixed"),
    ("3e", {"scores": mixup_scores(UP, None)}, "not tested"),
    ("3f", {"scores": spanish(FLAT, DOWN)}, "supported"),
    ("3f", {"scores": spanish(FLAT, UP)}, "differs from print"),
    ("3f", {"scores": spanish(FLAT, NOISY)}, "undecided"),
    ("3g", {"scores": home_gains(FLAT)}, "supported"),
    ("3g", {"scores": home_gains(DOWN)}, "differs from print"),
    ("3g", {"scores": home_gains(NOISY)}, "undecided"),
    ("3g", {"scores": home_gains(None)}, "not tested"),
    ("3h", {"scores": scores_by_size("qa", DOWN)}, "supported"),
    ("3h", {"scores": scores_by_size("qa", UP)}, "contradicted"),
    ("3h", {"scores": scores_by_size("nli", UP)}, "not tested"),
    ("3i", {"scores": opening(UP)}, "supported"),
    ("3i", {"scores": opening(DOWN)}, "mixed"),
    ("3i", {"scores": opening(UP, None)}, "not tested"),
    ("3j", continual(UP, DOWN, ("ner", "qa")), "supported"),
    ("3j", continual(UP, UP, ("ner", "qa")), "differs from print"),
    ("3j", continual(UP, NOISY, ("ner", "qa")), "undecided"),
    *(("3c", {"scores": gains_of_tasks(UP, UP), "word_distance": fine_tuned(change, tasks)}, verdict)
      for change, tasks, verdict in (
          (DOWN, ("nli", "ner", "qa"), "supported"),
          (UP, ("nli", "ner", "qa"), "contradicted"),
          (NOISY, ("nli", "ner", "qa"), "undecided"),
          (DOWN, ("nli", "ner"), "not tested"),
      )),
]  # fmt: skip


def other_adjustment(**other_item: str) -> Rows:
    theirs = {**adjusted_facts(), "encoder": "other", "encoder.run": "other", **other_item}
    worse = [row for task in ("nli", "ner") for row in scores(DOWN, task=task, **theirs)]
    return [*gains_of_tasks(UP, UP), *worse]


def entities() -> Rows:
    words = [{**row, "main": False} for row in gains("ner", UP, metric="word_f1")]
    return [*gains("nli", UP), *gains("ner", DOWN, metric="span_f1"), *words, *gains("qa", FLAT)]


def gains_at_any_size() -> Rows:
    rows = [*scores([0.0] * 5, **adjusted_facts(250)), *scores(UP, **adjusted_facts(None))]
    return [*rows, *({**row, "task": "ner"} for row in rows)]


def gains_with_fewer_examples() -> Rows:
    """Return an original encoder that is better on a third of the examples, as from a different recipe."""
    rows = [{**row, "optimization.examples": 3000} for row in gains_of_tasks(UP, UP)]
    better = [row for task in ("nli", "ner") for row in scores([0.3] * 5, task=task)]
    return [*rows, *({**row, "optimization.examples": 1000} for row in better)]


ELSEWHERE = [*gains("nli", DOWN, language="qab"), *gains("nli", DOWN, language="qaa")]

RULES = {
    "an unmeasured half saves nothing that is contradicted": ("3a", gains_of_tasks(UP, DOWN, None), "mixed"),
    "no significant gain is not yet no gain": ("3a", gains_of_tasks(UP, UP, NOISY), "undecided"),
    "a loss in question answering is no help either": ("3a", gains_of_tasks(UP, UP, DOWN), "supported"),
    "few seeds refute no small gain": ("3a", gains_of_tasks((0.017, 0.03, 0.002), UP[:3]), "undecided"),
    "another loss decides nothing": (
        "3a", other_adjustment(**{"encoder.adjusted": "contrastive-alignment"}), "supported"),
    "[CLS] alone decides nothing": (
        "3a", other_adjustment(**{"encoder.adjusted.pulled": "opening"}), "supported"),
    "only languages adjusted to count": ("3a", [*gains_of_tasks(UP, UP), *ELSEWHERE], "supported"),
    "entities are judged by words where they were measured": ("3a", entities(), "supported"),
    "all translations are more than any number": ("3b", gains_at_any_size(), "supported"),
    "models that read fewer examples decide nothing": ("3a", gains_with_fewer_examples(), "supported"),
}  # fmt: skip


def test_part_of_speech_tags_decide_nothing_about_distances() -> None:
    rows = [*fine_tuned(DOWN), *distances("upos", UP)]
    outcome = Judged(CLAIMS, make_measurements(scores=gains_of_tasks(UP, UP), word_distance=rows))["3c"]
    assert outcome.verdict == "supported"
    assert "upos: related words 5.00 → 5.05" in outcome.checks[-1].note


def test_an_unmeasured_half_is_no_support() -> None:
    outcome = Judged(CLAIMS, make_measurements(scores=gains_of_tasks(UP, UP, None)))["3a"]
    assert (outcome.verdict, "qa: not measured" in outcome.found) == ("not tested", True)


def test_holm_corrects_what_contradicts_and_not_what_supports() -> None:
    barely = (0.014, 0.03, 0.05, 0.002, 0.02)  # p = .04 by itself
    upper_outcome, lower_outcome = (
        Judged(CLAIMS, make_measurements(scores=gains_of_tasks(change, change)))["3a"]
        for change in (barely, [-change for change in barely])
    )
    assert 0.025 < upper_outcome.checks[0].p_value < 0.05
    assert (upper_outcome.verdict, lower_outcome.verdict) == ("supported", "undecided")
    assert "would have been seen" in lower_outcome.found


def test_what_would_have_been_seen_is_of_the_corrected_level() -> None:
    claims = [claim for claim in CLAIMS if claim.id == "3a"]
    (outcome,) = judge(claims, make_measurements(scores=gains_of_tasks(NOISY, NOISY)))
    tests = len(outcome.checks)
    smallest_seen = check_rows([outcome])["smallest_seen"]
    corrected_value = [100 * check.estimate.smallest_seen(0.05 / tests) for check in outcome.checks]
    assert list(smallest_seen) == pytest.approx(corrected_value)
    assert all(
        corrected_result > 100 * check.estimate.smallest_seen()
        for check, corrected_result in zip(outcome.checks, smallest_seen, strict=True)
    )


def test_continual_models_are_not_credited_with_the_adjustment() -> None:
    frames = continual(UP, FLAT, ("nli",))
    frames["scores"] += scores([-0.2] * 5)  # the original encoder is far worse than the adjusted one
    outcome = Judged(CLAIMS, make_measurements(**frames))["3d"]
    assert outcome.verdict == "undecided"
    assert outcome.checks[-1].estimate.mean == pytest.approx(0.0)


def test_continual_models_of_the_original_encoder_are_beside_the_claim() -> None:
    rows = [*gains("nli", UP), *scores(DOWN, **CONTINUAL)]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3d"]
    assert outcome.verdict == "not tested"
    assert "a source-only one, in nli, ner, qa" in outcome.found
    assert "nli made qad: continual − source-only −5.0" in outcome.checks[-1].note


def test_all_words_are_not_the_opening_alone_where_only_one_was_pulled() -> None:
    unsaid_value = [
        {key: value for key, value in row.items() if key != "encoder.adjusted.pulled"}
        for row in gains_of_tasks(UP, UP)
    ]
    for rows in (unsaid_value, gains_of_tasks(UP, UP), opening(UP)[5:10]):
        outcome = Judged(CLAIMS, make_measurements(scores=rows))["3i"]
        assert (outcome.verdict, [check.values for check in outcome.checks]) == ("not tested", [(), ()])


def test_each_language_is_scored_by_the_encoder_adjusted_to_it() -> None:
    other_item = {
        **adjusted_facts(),
        "encoder": "to-qab",
        "encoder.run": "to-qab",
        "encoder.pairs": "qaa-qab",
    }
    rows = [*gains_of_tasks(UP, UP), *scores([0.0] * 5, language="qab")]
    rows += [*scores(UP, language="qab", **other_item), *scores(DOWN, **other_item)]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3a"]
    assert outcome.checks[0].comparison is not None
    assert outcome.checks[0].comparison.languages == ("qab", "qad")
    assert outcome.checks[0].estimate.mean == pytest.approx(0.05)


def test_distances_that_are_free_of_scale_decide() -> None:
    """Larger states increase the L2 distance of words, but not the cosine distance."""
    grown_rows = fine_tuned(UP)
    turned_value = [{**row, "distance": "cosine"} for row in fine_tuned(DOWN)]
    scores_of = gains_of_tasks(UP, UP)
    verdicts = [
        Judged(CLAIMS, make_measurements(scores=scores_of, word_distance=rows))["3c"].verdict
        for rows in (grown_rows, [*grown_rows, *turned_value])
    ]
    assert verdicts == ["contradicted", "supported"]


def test_of_several_settings_of_the_adjustment_the_papers_is_judged() -> None:
    held_value = {**adjusted_facts(), "encoder": "held", "encoder.run": "held", "encoder.adjusted.stay": 9.0}
    rows = [{"encoder.adjusted.stay": 1.0, **row} for row in gains_of_tasks(UP, UP)]
    worse = [row for task in ("nli", "ner") for row in scores(DOWN, task=task, **held_value)]
    outcomes, single_outcome = (
        Judged(CLAIMS, make_measurements(scores=[*part, *worse]))["3a"]
        for part in (rows, [row for row in rows if not row["encoder.adjusted"]])
    )
    assert (outcomes.verdict, single_outcome.verdict) == ("supported", "contradicted")


def test_settings_as_near_to_the_papers_are_judged_one_by_one() -> None:
    held_value = {
        **adjusted_facts(),
        "encoder": "held",
        "encoder.run": "held",
        "encoder.adjusted.form": "mean",
    }
    rows = [{"encoder.adjusted.stay": 9.0, **row} for row in gains_of_tasks(UP, UP)]
    outcome = Judged(CLAIMS, make_measurements(scores=[*rows, *scores(DOWN, **held_value)]))["3a"]
    assert outcome.verdict == "mixed"
    assert "stay 9.0" in outcome.found


def second_encoder_rows(rows: Rows) -> Rows:
    """Return the same rows for a second encoder and its adjusted versions."""
    other_item = {"encoder.original": "large", "encoder.name": "large"}
    names = [{name: f"large {row[name]}" for name in ("encoder", "encoder.run", "run")} for row in rows]
    bare_value = [
        {"encoder": "large", "encoder.run": "large"} if row["encoder.adjusted"] == "" else {} for row in rows
    ]
    return [
        {**row, **other_item, **name, **own_part}
        for row, name, own_part in zip(rows, names, bare_value, strict=True)
    ]


def two_encoders(first_continual: dict[str, Rows], second: dict[str, Rows]) -> dict[str, Rows]:
    return {
        name: [{**row, "run": f"{name} {row.get('run')}", "encoder.name": "small"} for row in rows]
        + second_encoder_rows([{**row, "run": f"{name} {row.get('run')}"} for row in second[name]])
        for name, rows in first_continual.items()
    }


@pytest.mark.slow
def test_encoders_are_never_averaged() -> None:
    """One encoder's words are drawn together, the other's apart. One gains, the other loses."""
    frames = [
        {"scores": gains_of_tasks(gain, UP), "word_distance": fine_tuned(change)}
        for gain, change in ((UP, DOWN), (DOWN, UP))
    ]
    drawn_row = Judged(CLAIMS, make_measurements(**two_encoders(*frames)))
    means = {check.about: round(check.estimate.mean, 2) for check in drawn_row["3c"].checks}
    assert means["nli, small: related words 5.00 → 4.95, mean distance"] == -0.05
    assert means["nli, large: related words 5.00 → 5.05, mean distance"] == 0.05
    assert drawn_row["3c"].verdict == "mixed"
    gained_values = {check.about for check in drawn_row["3a"].checks}
    assert {
        f"nli made qad, {name}: adjusted − original" in gained_value
        for name in ("small", "large")
        for gained_value in gained_values
    }
    assert len(gained_values) == len(drawn_row["3a"].checks)
    kept_row = Judged(
        CLAIMS, make_measurements(**two_encoders(continual(UP, UP, ("nli",)), continual(DOWN, UP, ("nli",))))
    )
    assert [round(check.estimate.mean, 2) for check in kept_row["3d"].checks[:2]] == [-0.05, 0.05]


def test_one_adjusted_encoder_is_one_draw_however_often_it_is_fine_tuned() -> None:
    rows = [{**row, "encoder.run": row["encoder"]} for row in gains_of_tasks(UP, UP)]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3a"]
    assert (outcome.verdict, "one adjusting seed" in outcome.found) == ("undecided", True)


def test_fine_tuning_seeds_are_averaged_within_each_adjusted_encoder() -> None:
    adjusted_once = [row for row in gains_of_tasks(UP, UP) if row["encoder.adjusted"]]
    rows = [row for row in gains_of_tasks(UP, UP) if not row["encoder.adjusted"]]
    rows += [
        {**row, "encoder.run": f"{row['encoder']}-draw-{draw}", "score": row["score"] + gain}
        for draw, gain in enumerate((0.0, 0.3, -0.3))
        for row in adjusted_once
    ]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3a"]
    assert [len(check.values) for check in outcome.checks[:2]] == [3, 3]
    assert outcome.verdict == "undecided"


def test_one_adjusted_encoder_of_each_size_is_one_rank_correlation() -> None:
    rows = [
        {**row, "encoder.run": row["encoder"]}
        for row in scores_by_size("nli", UP) + scores_by_size("ner", UP)
    ]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3b"]
    assert outcome.verdict == "undecided"
    assert {check.unit for check in outcome.checks} == {"adjusting seed"}
    assert {len(check.values) for check in outcome.checks} == {1}


def test_two_sizes_have_no_rank_correlation_of_their_own() -> None:
    rows = [row for row in scores_by_size("nli", UP) + scores_by_size("ner", UP) if row["encoder.size"] != 30]
    outcome = Judged(CLAIMS, make_measurements(scores=rows))["3b"]
    assert (outcome.verdict, "ρ" in outcome.found) == ("supported", False)


def everything() -> dict[str, Rows]:
    frames = continual(UP, UP, ("nli",))
    return {**frames, "scores": [*frames["scores"], *gains_of_tasks(UP, NOISY)]}


def test_a_folder_without_adjustment_is_not_asked() -> None:
    assert Judged(CLAIMS, make_measurements(scores=scores(UP), word_distance=fine_tuned(DOWN))) == {}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_tiny_study_has_the_numbers_it_had(study) -> None:
    row = Judged(CLAIMS, study("adjustment"))
    assert "nli: qad −1.7" in old_claim("adjustment", "f")
    assert [f"{100 * row[name].checks[0].estimate.mean:.1f}" for name in ("3a", "3b")] == ["-1.7", "-1.7"]
    abouts = [check.about for check in row["3c"].checks]
    assert abouts[0] == "nli: related words 0.43 → 0.43, mean distance"
    assert len(abouts) == 5 and abouts[-1] == "qa: not measured"
    messages = old_claim("adjustment", "i")
    for words in ("AUC nli 0.866 fine-tuned, 0.899 continual", "AUC ner 0.846 fine-tuned, 0.851 continual"):
        assert words in messages
        _, task, numbers = words.split(" ", 2)
        assert f"{task}: AUC {numbers}" in row["3d"].checks[0].note
    assert "nli: qad −0.8" in messages
    assert "nli xnli qad: continual − source-only −0.8" in row["3d"].checks[0].note
    assert "gain +1.7 points mixed, −1.7 points plain, p = 0.2697, n = 3" in old_claim("adjustment", "j")
    mixed_check = row["3e"].checks[0]
    assert "gain +1.7 mixed, -1.7 plain" in mixed_check.about
    assert (mixed_check.unit, len(mixed_check.values)) == ("adjusting seed", 1)
