"""Adjusted encoders in a report: which are meant, side by side with marks, by bitext size, and the claims."""

import csv
import json

import pytest
from adjusted_runs import HOW, align, content, distance, write_adjust, write_distances, write_system
from synthetic_runs import measure, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.adjusted import encoders_of
from isogloss.oldreports.findings import findings
from isogloss.oldreports.found import what_was_found
from isogloss.oldreports.gather import gather, mixed_test_sets
from isogloss.oldreports.systems import families

GAINS = {1000: 0.1, 10000: 0.25}
TUNED = (5.0, 7.0, 0.8)
"""Distances of related and unrelated words after fine-tuning, and the AUC."""


def build(out, gains=GAINS, *, task="nli", seeds=(0, 1, 2), mixed=0.1, continual=0.2, keep=True, tuned=TUNED):
    """Write an original encoder and one for each size; German gains, English and French do not."""
    labels = {0: "mini"}
    for size in gains:
        labels[size] = write_adjust(out, f"ad{size:06d}", content(size))
    names = [f"ad{size:06d}" for size in gains]
    for seed in seeds:
        about = {"seed": seed, "task": task, "keep": keep}
        for size, label in labels.items():
            scores = {"en": 0.3, "de": gains.get(size, 0), "fr": 0.0}
            names.append(write_system(out, f"s{size}-{seed}", scores, encoder=label, **about))
            scores = {"de": (gains[size] + mixed) if size else 0.0}
            both = {"corpus": "xnli mixed", "inputs": "mixed", "encoder": label}
            names.append(write_system(out, f"m{size}-{seed}", scores, **both, **about))
        own = {"en": 0.3, "de": continual}
        names.append(write_system(out, f"c{seed}", own, method="continual", target="de", **about))
    names.append(write_distances(out, distances(tuned=tuned)))
    write_plan(out, names, title="Adjusted")
    return labels


def distances(task="nli", tuned=TUNED, continual=0.9):
    yield distance("mini", 6.0, 9.0, 0.85)
    yield distance("mini", *tuned, task, "source-only")
    yield distance("mini", 5.0, 8.0, continual, task, "continual")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adjusted")
    build(folder)
    write_report(folder)
    return folder


def table(out, name):
    with (out / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def verdicts(out):
    return {claim.letter: claim for claim in findings(gather(out))[0].adjustment_claims()}


def encoders(out, *runs):
    names = [name for name, _ in runs]
    labels = [write_adjust(out, name, run) for name, run in runs]
    write_plan(out, names)
    return encoders_of(gather(out)), labels


def test_what_an_encoder_was_made_from_is_told_from_content(tmp_path):
    found, (label,) = encoders(tmp_path, ("abcdef12", content(5000, pairs=("en-de", "en-fr"))))
    one = found.adjusted[label]
    assert (one.base, one.last.how, one.last.translations) == ("mini", HOW, 10000)
    assert one.languages == {"en", "de", "fr"}
    assert found.base(label) == "mini" and found.is_original("mini") and not found.is_original(label)
    assert encoders_of(gather(tmp_path)).is_original("mini, something on en-de (abcdef)")


def test_translations_that_were_read_go_before_those_asked_for(tmp_path):
    label = write_adjust(tmp_path, "abcdef12", content(0), read=777)
    write_plan(tmp_path, ["abcdef12"])
    assert encoders_of(gather(tmp_path)).adjusted[label].last.translations == 777


def test_an_encoder_adjusted_twice_has_two_steps(tmp_path):
    first = content(300)
    label = write_adjust(tmp_path, "aaaaaa11", first)
    second = content(500, pairs=("en-fr",), encoder=first)
    again = write_adjust(tmp_path, "bbbbbb22", second, base=label)
    write_plan(tmp_path, ["aaaaaa11", "bbbbbb22"])
    found = encoders_of(gather(tmp_path))
    assert [step.translations for step in found.adjusted[again].steps] == [300, 500]
    assert found.base(again) == "mini"
    assert found.names([again])[again] == f"{HOW} on 300 en-de, then {HOW} on 500 en-fr"


def test_names_leave_out_what_is_shared_and_keep_what_tells_apart(tmp_path):
    found, (a, b, c) = encoders(
        tmp_path,
        ("aaaaaa11", content(1000)),
        ("bbbbbb22", content(5000)),
        ("cccccc33", content(5000, learning_rate=1e-3)),
    )
    names = found.names(["mini", a, b, c])
    assert names == {
        "mini": "original",
        a: f"{HOW} on 1,000",
        b: f"{HOW} on 5,000 (bbbbbb)",
        c: f"{HOW} on 5,000 (cccccc)",
    }
    assert found.names(["mini", "large", a])[a] == f"mini, {HOW} on 1,000"
    assert [[one.label for one in group] for group in found.by_size()] == [[a, b], [c]]


def test_a_record_of_another_shape_is_no_adjusted_encoder(tmp_path):
    names = [write_run(tmp_path, "odd", {"kind": "adjust", "title": "encoder x", "run": {"kind": "adjust"}})]
    write_plan(tmp_path, names)
    assert encoders_of(gather(tmp_path)).adjusted == {}


def test_families_hold_adjusted_encoders_beside_their_own_original(tmp_path):
    found, (label,) = encoders(tmp_path, ("abcdef12", content(5000)))
    assert [family.encoders for family in families(["mini", label], found)] == [("mini", label)]
    assert families(["mini"], found) == []
    several = families([label, "large", "mini"], found)
    assert [(one.encoders, one.all_original) for one in several] == [
        (("mini", label), False),
        (("large", "mini"), True),
    ]


def test_systems_stand_side_by_side_with_the_original_first(out):
    rows = table(out, "systems-xnli-nli-mini-en-test-accuracy")
    systems = list(dict.fromkeys((row["name"], row["method"]) for row in rows))
    assert systems == [
        ("original", "source-only"),
        ("original", "continual"),
        (f"{HOW} on 1,000", "source-only"),
        (f"{HOW} on 10,000", "source-only"),
    ]
    means = [row for row in rows if row["language"] == "mean of targets"]
    assert [row["method"] for row in means] == ["source-only"] * 3  # continual saw no French
    assert all(row["seeds"] == "3" for row in rows)


def test_marks_are_against_source_only_on_the_original(out):
    rows = table(out, "systems-xnli-nli-mini-en-test-accuracy")
    marked = {
        (row["translations"], row["method"], row["language"])
        for row in rows
        if row["p_holm"] and float(row["p_holm"]) < 0.05
    }
    assert marked == {
        ("0", "continual", "de"),
        ("1000", "source-only", "de"),
        ("10000", "source-only", "de"),
    }
    latex = (out / "tables/systems-xnli-nli-mini-en-test-accuracy.tex").read_text(encoding="utf-8")
    assert sum(line.count("*") for line in latex.splitlines()) == len(marked)
    html = (out / "report.html").read_text(encoding="utf-8")
    assert "* p &lt; 0.05 against original / source-only (paired t-test" in html


def test_what_differs_in_encoder_and_method_is_tested_too(tmp_path):
    label = write_adjust(tmp_path, "abcdef12", content(5000))
    systems = [("mini", "source-only", 0.0), (label, "source-only", 0.1), (label, "x-mixup", 0.2)]
    names = [
        write_system(tmp_path, f"r{place}-{seed}", {"de": gain}, encoder=encoder, method=method, seed=seed)
        for place, (encoder, method, gain) in enumerate(systems)
        for seed in (0, 1)
    ]
    write_plan(tmp_path, ["abcdef12", *names])
    marks = findings(gather(tmp_path))[0].marks
    assert {sign: len(tests) for sign, tests in marks.tests.items()} == {"*": 1, "†": 1, "‡": 1}
    assert marks.against["‡"] == "source-only on mini"


def test_mixed_test_sets_are_told_from_content_and_have_their_own_table(out):
    assert mixed_test_sets(gather(out)) == {"xnli mixed": "xnli"}
    rows = table(out, "systems-xnli-mixed-nli-mini-en-test-accuracy")
    assert {row["language"] for row in rows} == {"de"}
    assert any(row["p_holm"] for row in rows)


def test_one_encoder_has_no_systems_table(tmp_path):
    names = [write_system(tmp_path, "a", {"en": 0.1, "de": 0.0})]
    write_plan(tmp_path, names)
    assert not [path for path in write_report(tmp_path).tables if path.name.startswith("systems")]


def test_the_curve_has_every_size_and_the_original(out):
    rows = table(out, "bitext-size")
    german = [row for row in rows if row["language"] == "de" and row["corpus"] == "xnli"]
    assert [row["translations"] for row in german] == ["0", "1000", "10000"]
    means = [float(row["mean"]) for row in german]
    assert means == sorted(means)
    assert (out / "figures" / f"bitext-size-mini-{HOW}-1.pdf").read_bytes().startswith(b"%PDF")


def test_one_size_makes_no_curve(tmp_path):
    build(tmp_path, {1000: 0.1}, seeds=(0,))
    assert not [path for path in write_report(tmp_path).figures if path.name.startswith("bitext-size")]


def test_the_paragraph_speaks_of_originals_and_of_what_adjusting_changes(out):
    gathered = gather(out)
    rows = findings(gathered)[0]
    found = what_was_found(gathered, rows, (rows.claims(), rows.adjustment_claims(), ()))
    assert "mean over 3 seeds" in found and "encoders" not in found.split("With the encoder")[0]
    assert f"With the encoder adjusted by {HOW} on 10,000, the targets it was adjusted to go from" in found
    assert "Trained by continual, the targets go from" in found
    assert "About adjustment: of 5 claims" in found


def test_the_first_papers_claims_leave_adjusted_encoders_and_mixed_sets_out(out):
    found = findings(gather(out))[0]
    plain = found.originals()
    assert {row.encoder for row in plain.scores} == {"mini"}
    assert {row.corpus for row in plain.scores} == {"xnli"}
    assert len({row.encoder for row in found.scores}) == 3


def test_the_claims_are_supported_where_everything_gains(tmp_path):
    build(tmp_path, task="nli")
    found = verdicts(tmp_path)
    assert {letter: found[letter].verdict for letter in "fghij"} == dict.fromkeys("fghij", "supported")
    assert "nli: de +2" in found["f"].number and "*" in found["f"].number
    assert "fr" not in found["f"].number  # not adjusted to
    assert "ρ 1.00 (nli)" in found["g"].number
    assert "related 6.00 → 5.00, unrelated 9.00 → 7.00" in found["h"].number
    assert "AUC nli 0.800 fine-tuned, 0.900 continual" in found["i"].number
    assert "n = 3" in found["j"].number


def test_the_claims_are_refuted_where_nothing_gains(tmp_path):
    build(tmp_path, {1000: 0.1, 10000: -0.1}, mixed=-0.2, continual=-0.1)
    found = verdicts(tmp_path)
    assert {letter: found[letter].verdict for letter in "fgij"} == dict.fromkeys("fgij", "refuted")


def test_question_answering_that_gains_refutes_the_first(tmp_path):
    build(tmp_path, task="qa")
    assert verdicts(tmp_path)["f"].verdict == "refuted"


def test_words_that_go_apart_refute_the_drawing_together(tmp_path):
    build(tmp_path, seeds=(0,), tuned=(5.0, 9.5, 0.95))
    found = verdicts(tmp_path)
    assert found["h"].verdict == found["i"].verdict == "refuted"
    assert found["j"].verdict == "not tested"  # one seed


def test_without_predictions_gains_are_not_tested(tmp_path):
    build(tmp_path, keep=False)
    found = verdicts(tmp_path)
    assert {found[letter].verdict for letter in "fgi"} == {"not tested"}
    assert "with predictions" in found["f"].number


def test_without_adjusting_the_claims_do_not_come_up(tmp_path):
    write_plan(tmp_path, [write_system(tmp_path, "a", {"en": 0.1, "de": 0.0})])
    report = write_report(tmp_path)
    assert [claim.letter for claim in report.claims] == list("abcde")
    assert "cross-lingual adjustment" not in report.html.read_text(encoding="utf-8")


def test_curves_of_adjusting_leave_rows_of_pairs_out(out):
    assert findings(gather(out))[1] == []
    assert (out / "figures" / f"adjusting-{HOW}.pdf").exists()
    assert len(table(out, "rows-adjust")) == 2 * (1 + 3)


def test_alignments_with_gold_have_their_error_rate(tmp_path):
    row = {"bitext": "bible", "languages": "en-de", "split": "train", "aligner": "fast-align"}
    gold = {"gold_pairs": 9, "precision": 0.9, "recall": 0.8, "f1": 0.85, "aer": 0.125}
    about = {"kind": "align", "title": "fast-align"}
    names = [
        write_run(tmp_path, name, {**about, "run": align(5, symmetrization=how), "rows": [row | more]})
        for name, how, more in (
            ("a", "union", {"pairs": 10, "links": 50, **gold}),
            ("b", "intersection", {"pairs": 20, "links": 80}),
        )
    ]
    write_plan(tmp_path, names)
    write_report(tmp_path)
    found = table(tmp_path, "word-alignment")
    assert [(one["settings"], one["aer"]) for one in found] == [
        ("symmetrization union", "0.125"),
        ("symmetrization intersection", ""),
    ]
    latex = (tmp_path / "tables/word-alignment.tex").read_text(encoding="utf-8")
    assert "12.5" in latex and "–" not in latex


def test_alignments_without_gold_have_no_table(tmp_path):
    row = {"bitext": "b", "languages": "en-de", "split": "train", "aligner": "given", "pairs": 1, "links": 1}
    write_plan(tmp_path, [write_run(tmp_path, "a", {"kind": "align", "rows": [row], "run": align(0)})])
    assert not [path for path in write_report(tmp_path).tables if path.name.startswith("word-alignment")]


def test_pairs_in_a_fine_tuning_are_no_lost_epochs(tmp_path):
    epoch = {"epoch": 1, "language": "en", "metric": "accuracy", "score": 0.5, "chosen": True}
    rows = [epoch, {"pair": "en-de", "translations": 3, "left_out": 0, "pulled": 9}]
    write_plan(tmp_path, [write_run(tmp_path, "ft", {"kind": "fine-tune", "rows": rows})])
    assert write_report(tmp_path).warnings == ()


def test_measures_without_content_are_no_mixed_sets(tmp_path):
    names = [write_run(tmp_path, "x", measure("scores", [json.loads("{}")]))]
    write_plan(tmp_path, names)
    assert mixed_test_sets(gather(tmp_path)) == {}
