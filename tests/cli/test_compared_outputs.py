"""compare --predictions: outputs made elsewhere are paired, scored and tested as runs. Errors name lines."""

import json
from itertools import product

import pytest
from scipy.stats import binomtest, spearmanr, ttest_rel
from seqeval.metrics import f1_score

import isogloss
from isogloss.core.errors import ConfigError
from says import check_wording


@pytest.fixture
def write_objects(tmp_path):
    """Write objects as JSON lines under a name."""

    def write(name, objects):
        path = tmp_path / name
        path.write_text("".join(json.dumps(item) + "\n" for item in objects), encoding="utf-8")
        return path

    return write


def labels(right, gold="ab" * 20, language="sw", **more):
    """One object an example: right where the number is among these."""
    return [
        {
            "id": f"x{n}",
            "text": "…",
            "label": item if n in right else "c",
            "gold": item,
            "language": language,
            **more,
        }
        for n, item in enumerate(gold)
    ]


def corrected_by_holm(*p_values):
    """Correct by the definition: the k-th smallest times how many are left, never falling."""
    order = sorted(p_values)
    return [
        max(min(1, p * (len(order) - k)) for k, p in enumerate(order[: order.index(p_value) + 1]))
        for p_value in p_values
    ]


def test_labels_are_scored_by_accuracy_and_tested_by_mcnemar_in_each_language(command, write_objects):
    good_ranges = set(range(32))
    poor = {*range(20), 39}
    ours = [*labels(good_ranges), *labels(set(range(30)), language="en")]
    theirs = [*labels(poor), *labels(set(range(29)), language="en")]
    sw, en, mean = command(
        "compare",
        "--predictions",
        write_objects("a.jsonl", ours),
        write_objects("b.jsonl", theirs[::-1]),
        "--json",
    ).lines
    assert (sw["language"], en["language"], mean["languages"]) == ("sw", "en", ["sw", "en"])
    assert {row["paired_by"] for row in (sw, en, mean)} == {"id"}
    assert (sw["measure"], sw["score"], sw["baseline_score"], sw["examples"]) == (
        "accuracy",
        32 / 40,
        21 / 40,
        40,
    )
    assert (sw["test"], en["test"]) == ("McNemar", "McNemar")
    assert sw["p_examples"] == pytest.approx(binomtest(12, 13).pvalue, rel=1e-12)
    assert en["p_examples"] == 1 == binomtest(1, 1).pvalue
    # Equal ids are one example: the differences of both languages are averaged first.
    halves = [
        [((n in item) + (n < side)) / 2 for n in range(40)] for item, side in ((good_ranges, 30), (poor, 29))
    ]
    assert mean["p_examples"] == pytest.approx(ttest_rel(*halves).pvalue, rel=1e-9)
    assert mean["difference"] == pytest.approx((11 / 40 + 1 / 40) / 2)
    expected = corrected_by_holm(sw["p_examples"], en["p_examples"], mean["p_examples"])
    assert [row["p_examples_holm"] for row in (sw, en, mean)] == pytest.approx(expected, rel=1e-12)
    assert sw["p_value"] is None


def test_equivalence_of_outputs_is_tested_at_a_margin_in_points(command, write_objects):
    ours = set(range(32))
    theirs = {*range(29), 39}
    files = write_objects("a.jsonl", labels(ours)), write_objects("b.jsonl", labels(theirs))
    ((line,), plain_lines) = (
        command("compare", "--predictions", *files, *more, "--json").lines for more in (["--margin", 20], [])
    )
    right = [[float(index in side) for index in range(40)] for side in (ours, theirs)]
    shifted_value = [[value + bound for value in right[1]] for bound in (0.2, -0.2)]
    expected = max(
        ttest_rel(right[0], baseline, alternative=side).pvalue
        for baseline, side in zip(shifted_value, ("less", "greater"), strict=True)
    )
    assert (line["margin"], line["p_equivalence"]) == (0.2, pytest.approx(expected))
    assert (plain_lines[0]["margin"], plain_lines[0]["p_equivalence"]) == (None, None)
    output = command("compare", "--predictions", *files, "--margin", 20).out
    assert "p (equivalent)" in output and f"{expected:.3f}" in output
    assert "less than 20 points" in " ".join(output.split())


def test_spans_are_scored_by_f1_and_tested_by_every_swap(command, write_objects):
    gold = [["B-PER", "I-PER", "O"], ["O", "B-LOC"], ["B-ORG"], ["O", "O"], ["B-PER", "O", "B-LOC"]]
    ours = [["B-PER", "I-PER", "O"], ["O", "B-LOC"], ["O"], ["O", "B-LOC"], ["B-PER", "O", "O"]]
    theirs = [["B-PER", "O", "O"], ["B-LOC", "O"], ["B-ORG"], ["O", "O"], ["O", "O", "O"]]
    files = [
        write_objects(name, [{"labels": item, "line": n} for n, item in enumerate(message)])
        for name, message in (("a.jsonl", ours), ("b.jsonl", theirs))
    ]
    right = write_objects("gold.jsonl", [{"gold": item} for item in gold])
    (line,) = command("compare", "--predictions", *files, "--gold", right, "--json").lines
    assert (line["measure"], line["paired_by"], line["language"]) == ("span_f1", "order", "")
    assert line["score"] == pytest.approx(f1_score(gold, ours))
    assert line["baseline_score"] == pytest.approx(f1_score(gold, theirs))
    difference = abs(f1_score(gold, ours) - f1_score(gold, theirs))
    swaps = [
        zip(*((b, a) if swap else (a, b) for swap, a, b in zip(item, ours, theirs, strict=True)), strict=True)
        for item in product((False, True), repeat=5)
    ]
    differences = [abs(f1_score(gold, list(a)) - f1_score(gold, list(b))) for a, b in swaps]
    assert line["test"] == "permutation"
    assert line["p_examples"] == sum(item > difference - 1e-9 for item in differences) / 32
    # The gold file says no language; the outputs may, also those by id.
    for name, more in (("order", lambda n: {}), ("id", lambda n: {"id": n})):
        two = [
            write_objects(
                f"{file.name}.{name}",
                [
                    {**json.loads(item), **more(n), "language": "ab"[n % 2]}
                    for n, item in enumerate(file.read_text().splitlines())
                ],
            )
            for file in files
        ]
        path = write_objects("by.jsonl", [{"gold": item, **more(n)} for n, item in enumerate(gold)])
        a, b, mean = command("compare", "--predictions", *two, "--gold", path, "--json").lines
        assert [row["paired_by"] for row in (a, b, mean)] == [name] * 3
        assert a["score"] == pytest.approx(f1_score(gold[::2], ours[::2]))
        assert mean["score"] == pytest.approx((a["score"] + b["score"]) / 2)
    short_path = write_objects("short.jsonl", [{"gold": gold[0]}])
    assert (
        "5 outputs for 1 gold answers"
        in command("compare", "--predictions", *files, "--gold", short_path).message
    )
    words = command(
        "compare", "--predictions", *files, "--gold", right, "--measure", "word_f1", "--json"
    ).lines
    assert words[0]["score"] == pytest.approx(2 * 4 / (6 + 5))


def samples(values, **more):
    """As lm-evaluation-harness logs them: a line for each filter."""
    return [
        {
            "doc_id": n, "doc": {"question": "?"}, "target": "4", "arguments": {"gen_args_0": {"arg_0": "?"}},
            "resps": [["4"]], "filtered_resps": ["4"], "filter": name, "metrics": ["exact_match", "score"],
            "doc_hash": f"d{n}", "prompt_hash": "p", "target_hash": "t",
            "exact_match": float(value > 0.5), "score": value if name == "strict" else 1 - value, **more,
        }
        for name in ("strict", "flexible")
        for n, value in enumerate(values)
    ]  # fmt: skip


def test_samples_of_the_harness_bring_their_metrics_under_its_names(command, write_objects):
    ours = [0.9, 0.8, 0.75, 0.2, 0.6]
    theirs = [0.7, 0.1, 0.8, 0.1, 0.4]
    files = write_objects("samples_a.jsonl", samples(ours)), write_objects("samples_b.jsonl", samples(theirs))
    (line,) = command("compare", "--predictions", *files, "--json").lines
    assert (line["measure"], line["score"], line["examples"]) == ("exact_match,strict", 4 / 5, 5)
    (line,) = command("compare", "--predictions", *files, "--measure", "score,strict", "--json").lines
    assert line["score"] == pytest.approx(sum(ours) / 5)
    assert line["test"] == "paired t"
    assert line["p_examples"] == pytest.approx(ttest_rel(ours, theirs).pvalue, rel=1e-9)
    # Earlier versions list no metrics and know no filters; a metric that is no number is no mean.
    older = [
        {"doc_id": n, "doc": {}, "target": "", "arguments": [], "resps": [], "filtered_resps": [],
         "bleu": ["a", "b"], "acc": n % 2}
        for n in range(4)
    ]  # fmt: skip
    old_paths = (
        write_objects("old.jsonl", older),
        write_objects("flat.jsonl", [{**item, "acc": 0} for item in older]),
    )
    (line,) = command("compare", "--predictions", *old_paths, "--json").lines
    assert (line["measure"], line["score"], line["baseline_score"]) == ("acc", 0.5, 0)


def every_eval_ever(scores, model="a/b", result=None, **more):
    """As converters write the sidecar of Every Eval Ever: a line for each sample and result."""
    return [
        {
            "schema_version": "0.2.2", "evaluation_id": f"sib/{model}/1", "model_id": model,
            "evaluation_name": "sib", "sample_id": f"s{n}", "interaction_type": "single_turn",
            "evaluation_result_id": result and f"sib/{model}/1#{result}",
            "input": {"raw": f"q{n}", "reference": ["x"]}, "output": {"raw": ["x"]},
            "answer_attribution": [], "metadata": {"language": "sw"},
            "evaluation": {"score": score, "is_correct": score > 0.5}, **more,
        }
        for n, score in enumerate(scores)
    ]  # fmt: skip


OURS = [0.9, 0.8, 0.75, 0.2, 0.6]
THEIRS = [0.7, 0.1, 0.8, 0.1, 0.4]


def test_samples_of_every_eval_ever_have_a_score_or_the_results_they_belong_to(command, write_objects):
    files = [
        write_objects(f"{model}_samples.jsonl", every_eval_ever(scores, model))
        for model, scores in (("a", OURS), ("b", THEIRS))
    ]
    (only,) = command("compare", "--predictions", *files, "--json").lines
    assert (only["measure"], only["language"], only["examples"]) == ("score", "sw", 5)
    assert only["p_examples"] == pytest.approx(ttest_rel(OURS, THEIRS).pvalue, rel=1e-9)
    files = [
        write_objects(
            f"{model}2.jsonl",
            every_eval_ever(scores, model, "f1") + every_eval_ever([1.0, 0, 0, 0, 0], model, "em"),
        )
        for model, scores in (("a", OURS), ("b", THEIRS))
    ]
    (f1,) = command("compare", "--predictions", *files, "--json").lines
    (em,) = command("compare", "--predictions", *files, "--json", "--measure", "em").lines
    assert (f1["measure"], f1["score"]) == ("f1", pytest.approx(sum(OURS) / 5))
    assert (em["score"], em["difference"]) == (1 / 5, 0)


def inspect_log(path, values, target="x"):
    """As Inspect writes a log in JSON: samples with the scores of each scorer, here over two epochs."""
    samples = [
        {
            "id": n, "epoch": epoch, "input": f"q{n}", "target": target, "messages": [], "metadata": {},
            "scores": {
                "match": {"value": "CI"[value < 0.5], "answer": "x"},
                "judge": {"value": {"style": value + 0.1 * (epoch - 1), "sound": value > 0.5}},
            },
        }
        for epoch in (1, 2)
        for n, value in enumerate(values)
    ]  # fmt: skip
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": samples}
    path.write_text(json.dumps(log, indent=2), encoding="utf-8")
    return path


def test_a_log_of_inspect_has_a_measure_for_each_scorer_over_its_epochs(command, tmp_path):
    files = [inspect_log(tmp_path / name, scores) for name, scores in (("a.json", OURS), ("b.json", THEIRS))]
    (match,) = command("compare", "--predictions", *files, "--json").lines
    assert (match["measure"], match["score"], match["baseline_score"]) == ("match", 4 / 5, 2 / 5)
    (style,) = command("compare", "--predictions", *files, "--json", "--measure", "judge,style").lines
    assert (style["examples"], style["score"]) == (5, pytest.approx(sum(OURS) / 5 + 0.05))
    assert style["p_examples"] == pytest.approx(ttest_rel(OURS, THEIRS).pvalue, rel=1e-9)


def test_broken_samples_are_named(command, write_objects, tmp_path):
    good_path = write_objects("good.jsonl", every_eval_ever(OURS))
    twice = write_objects("twice.jsonl", every_eval_ever(OURS) * 2)
    bare_path = write_objects("bare.jsonl", every_eval_ever(OURS, evaluation={"is_correct": True}))
    other_path = write_objects("other.jsonl", every_eval_ever(OURS, input={"raw": "q", "reference": []}))
    log = inspect_log(tmp_path / "log.json", OURS)
    unscored_path = tmp_path / "unscored.json"
    unscored_path.write_text(json.dumps({"samples": [{"id": 7, "scores": None}]}), encoding="utf-8")
    binary = tmp_path / "log.eval"
    binary.write_bytes(b"PK")
    for first_item, message in (
        (twice, "twice.jsonl:6:"),
        (bare_path, "bare.jsonl:1: evaluation {'is_correct':"),
        (other_path, "other.jsonl:1: "),
        (unscored_path, "unscored.json: sample 7 with the scores None; expected scores that are grades"),
        (binary, "log.eval:"),
    ):
        text = command("compare", "--predictions", first_item, good_path).message
        assert message in text
    changed_path = inspect_log(tmp_path / "changed.json", OURS, target="y")
    assert "examples" in command("compare", "--predictions", log, changed_path).message


def test_answers_are_scored_as_the_official_script_scores_them(command, write_objects):
    gold = [["the Nile", "Nile"], "in 1990"]
    paths = [
        write_objects(
            name,
            [
                {"id": n, "answer": item, "gold": right}
                for n, (item, right) in enumerate(zip(texts, gold, strict=True))
            ],
        )
        for name, texts in (("a.jsonl", ("nile!", "1990")), ("b.jsonl", ("Rhine", "1990")))
    ]
    (f1,) = command("compare", "--predictions", *paths, "--json").lines
    (em,) = command("compare", "--predictions", *paths, "--json", "--measure", "em").lines
    assert (f1["score"], f1["baseline_score"]) == pytest.approx(((1 + 2 / 3) / 2, (2 / 3) / 2))
    assert (em["score"], em["baseline_score"]) == (0.5, 0)
    text = "mlqa_f1"
    assert (
        "no measure of both files" in command("compare", "--predictions", *paths, "--measure", text).message
    )
    german = [
        write_objects(f"{answer}.jsonl", [{"id": 1, "answer": answer, "gold": "der Rhein", "language": "de"}])
        for answer in ("Rhein", "Nil")
    ]
    scores = {
        name: command("compare", "--predictions", *german, "--json", "--measure", name).lines[0]["score"]
        for name in ("f1", "mlqa_f1", "em", "mlqa_em")
    }
    assert scores == {"f1": pytest.approx(2 / 3), "mlqa_f1": 1, "em": 0, "mlqa_em": 1}


def test_several_labels_numbers_and_options_have_measures_of_their_own(command, write_objects):
    sets = [["joy"], ["joy", "fear"], [], ["fear"]]
    ours = [{"id": n, "label": item, "gold": item} for n, item in enumerate(sets)]
    theirs = [{**item, "label": ["joy"]} for item in ours]
    files = write_objects("a.jsonl", ours), write_objects("b.jsonl", theirs)
    (line,) = command("compare", "--predictions", *files, "--json").lines
    assert (line["measure"], line["score"], line["baseline_score"]) == ("micro_f1", 1, 4 / 8)
    (line,) = command("compare", "--predictions", *files, "--json", "--measure", "exact_match").lines
    assert line["baseline_score"] == 1 / 4
    gold = [0.5, 3, 1, 4.5, 2, 5, 0]
    message = [1, 2.5, 2, 3, 2.2, 4, 2]
    ours = [
        {"id": n, "label": item, "gold": right}
        for n, (item, right) in enumerate(zip(message, gold, strict=True))
    ]
    files = (
        write_objects("c.jsonl", ours),
        write_objects("d.jsonl", [{**row, "label": -row["id"]} for row in ours]),
    )
    (line,) = command("compare", "--predictions", *files, "--json").lines
    assert (line["measure"], line["test"]) == ("spearman", "paired t")
    assert line["score"] == pytest.approx(spearmanr(gold, message).statistic)
    assert line["baseline_score"] == pytest.approx(spearmanr(gold, range(0, -7, -1)).statistic)
    ours = [{"id": n, "options": ["a", "b", "c"], "label": n % 3, "gold": 0} for n in range(6)]
    theirs = [{"id": n, "label": 0, "gold": 0} for n in range(6)]  # which options there are, one file says
    files = write_objects("e.jsonl", ours), write_objects("f.jsonl", theirs)
    (line,) = command("compare", "--predictions", *files, "--json").lines
    assert (line["measure"], line["score"], line["baseline_score"]) == ("accuracy", 2 / 6, 1)


def test_people_are_told_how_it_was_paired_and_tested(command, write_objects):
    files = write_objects("a.jsonl", labels(set(range(40)))), write_objects("b.jsonl", labels(set(range(10))))
    result = command("compare", *files, "--predictions", "--against", files[0], "--by", "order")
    assert result.status == 0
    assert f"{files[1]} against {files[0]}: classification by accuracy, paired by order" in result.out
    assert "-75.0 °" in result.out
    assert "McNemar's exact test" in result.out


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda item: item[:-1], "b.jsonl:40: example 'x39' of sw, which {a} lacks"),
        (lambda item: [*item, item[3]], "{a}:41: id 'x3' a second time (line 4); expected each once."),
        (
            lambda item: [{**item[0], "gold": "b"}, *item[1:]],
            "{a}:1: label 'b'; expected {b}:1 has: label 'a'.",
        ),
        (lambda item: [{**item[0], "gold": 3}, *item[1:]], "{a}:1: label 3; expected {b}:1 has: label 'a'."),
        (
            lambda item: [*item[:2], {"text": "…"}, *item[3:]],
            "{a}:3: the keys text; expected labels or label or answer",
        ),
        (
            lambda item: [*item[:2], {**item[2], "label": None}],
            "{a}:3: label 'None'",
        ),
        (
            lambda item: [{**two, "label": ["a"]} for two in item],
            "{a}:1: gold 'a'",
        ),
        (
            lambda item: [{**item[0], "label": ["a", 1]}, *item[1:]],
            """{a}:1: label "['a', 1]\"""",
        ),
        (lambda item: [{**item[0], "label": float("nan")}, *item[1:]], "{a}:1: label 'nan'"),
        (
            lambda item: [{"id": "x0", "labels": [1, "a"]}, *item[1:]],
            """{a}:1: labels "[1, 'a']\"""",
        ),
        (lambda item: [*item[:2], 7], "{a}:3: '7'"),
        (lambda item: [], "{a}:1:"),
        (
            lambda item: [{**two, "gold": None} for two in item],
            "{a}:1: no gold",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_file_and_line(command, write_objects, change, fact):
    a = write_objects("a.jsonl", change(labels({1})))
    b = write_objects("b.jsonl", labels({2}))
    message = command("compare", "--predictions", a, b).message
    check_wording(message, fact.format(a=a, b=b))


def test_languages_are_the_same_however_they_are_written(command, write_objects):
    a = write_objects("a.jsonl", labels({1}, language="swh_Latn"))
    b = write_objects("b.jsonl", labels({2}))
    (line,) = command("compare", "--predictions", a, b, "--json").lines
    assert line["language"] == "sw"


def test_what_is_asked_for_and_not_there_is_refused(command, write_objects):
    a = write_objects("a.jsonl", labels({1}))
    b = write_objects("b.jsonl", labels({2}))
    plain_path = write_objects("plain.jsonl", [{"label": "a"}] * 40)
    nameless = write_objects("nameless.jsonl", [{"id": None, "label": "a"}] * 40)
    harness = write_objects("samples.jsonl", samples([0.1]))
    other_path = write_objects("other.jsonl", samples([0.1], doc_hash="other"))
    unlike = write_objects("unlike.jsonl", samples([0.1], metrics=["bleu"], bleu=0.1))
    numbers = [write_objects(name, [{"label": 1.5, "gold": ["a"]}]) for name in ("number.jsonl", "n.jsonl")]
    for arguments, message in (
        ((a, b, "--measure", "acuracy"), "no measure of both files 'acuracy'. Did you mean 'accuracy'?"),
        ((a, b, "--by", "ids"), "no way to pair examples 'ids'. Did you mean 'id'?"),
        ((a,), "one file alone"),
        ((plain_path, plain_path.with_name("none.jsonl")), "cannot be read"),
        ((plain_path, b, "--by", "id"), f"{plain_path}:1: no id; expected"),
        ((nameless, b, "--by", "id"), f"{nameless}:1: no id; expected"),
        (
            (plain_path, write_objects("p.jsonl", [{"label": "b"}] * 40)),
            "plain.jsonl:1: no gold; expected a key gold",
        ),
        ((harness, other_path), "samples.jsonl:1: doc_id d0; expected"),
        ((harness, unlike), f"{harness}:"),
        (tuple(numbers), "number.jsonl:1: gold \"['a']\"; expected what fits label 1.5"),
    ):
        assert message in command("compare", "--predictions", *arguments).message
    assert "outputs" in command("compare", a, "--against", "x", "--by", "id").message


LACKS = {
    "NaN": lambda sample: {**sample, "exact_match": float("nan")},
    "infinity": lambda sample: {**sample, "exact_match": float("inf")},
    "null": lambda sample: {**sample, "exact_match": None},
    "a text": lambda sample: {**sample, "exact_match": "x"},
    "no key": lambda sample: {name: value for name, value in sample.items() if name != "exact_match"},
    "a list": lambda sample: {**sample, "exact_match": [1, 2]},
}
"""Values of a sample in the place of a number."""


@pytest.mark.parametrize("lacks", LACKS)
@pytest.mark.parametrize("side", ["a", "b"])
def test_a_sample_without_the_metric_is_named_and_never_compared_by_another(
    command, write_objects, lacks, side
):
    whole_samples = samples([0.1, 0.9, 0.4], filter="none")[:3]
    for broken_value in ([1], [0, 1, 2]):
        if len(broken_value) == 3 and lacks not in ("NaN", "infinity"):
            continue  # A metric that no sample has is none of that file's.
        changed_samples = [
            LACKS[lacks](sample) if n in broken_value else sample for n, sample in enumerate(whole_samples)
        ]
        lines = {"a": whole_samples, "b": whole_samples, side: changed_samples}
        files = [write_objects(f"{name}.jsonl", lines[name]) for name in ("a", "b")]
        message = command("compare", "--predictions", *files).message
        where = files["ab".index(side)]
        assert f"{where}:{broken_value[0] + 1}: sample '{broken_value[0]}' with exact_match" in message
        assert "name another measure (score)" in message
        (row,) = command("compare", "--predictions", *files, "--measure", "score", "--json").lines
        assert (row["task"], row["measure"], row["examples"]) == ("values", "score", 3)


def test_a_single_path_is_one_file_alone(write_objects):
    path = write_objects("a.jsonl", labels({1}))
    for files in (path, str(path), [path]):
        with pytest.raises(ConfigError, match=r"^compare:"):
            isogloss.compare_outputs(files)
    with pytest.raises(ConfigError, match=r"^compare:"):
        isogloss.compare_outputs([])
    (row,) = isogloss.compare_outputs(path, against=write_objects("b.jsonl", labels({2}))).rows
    assert (row["task"], row["measure"]) == ("classification", "accuracy")


def test_spans_in_other_schemes_are_read_and_mixed_schemes_refused(command, write_objects):
    gold = [["B-PER", "E-PER", "O"], ["S-LOC", "O"]]
    ours = [{"id": n, "labels": tags, "gold": tags} for n, tags in enumerate(gold)]
    theirs = [{**item, "labels": ["O"] * len(item["gold"])} for item in ours]
    files = write_objects("a.jsonl", ours), write_objects("b.jsonl", theirs)
    (row,) = command("compare", "--predictions", *files, "--json").lines
    assert (row["task"], row["measure"], row["score"]) == ("span-tagging", "span_f1", 1)
    strange = [{**ours[0], "labels": ["B-PER", "L-PER", "O"]}, ours[1]]
    message = command("compare", "--predictions", write_objects("c.jsonl", strange), files[1]).message
    assert "c.jsonl:1: labels 'L-PER' in 'B-PER L-PER O'; expected tags of IOBES" in message
