"""Printing comparisons of systems, with a legend, and choices of models for languages without labels."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.reports.comparison import ON_EXAMPLES, SURE, TESTS, Compared
from isogloss.reports.comparison_cells import (
    format_effect,
    format_scores,
    format_seeds_needed,
    format_tests,
    interval_text,
)
from isogloss.reports.names import count, test_set_name
from isogloss.reports.verdicts import p_text

Row = Mapping[str, Any]


def print_comparisons(comparisons: Compared, *, points: float, output: OutputOptions) -> None:
    """Print the comparisons of runs, and the number of seeds that would detect a difference of ``points``."""
    if output.as_json:
        for line in (*comparisons.rows, *({"note": note} for note in comparisons.notes)):
            emit(line)
        return
    for _, group in groupby(comparisons.rows, key=_identify_pair):
        rows = list(group)
        show_line(_title(rows))
        _print_table([_format_runs(row) for row in rows])
    show_line(_legend(comparisons.rows, points))
    unit = comparisons.rows[0]["unit"]
    _explain_equivalence(comparisons.rows, f"{unit}s and examples, or examples with one {unit}")
    for note in comparisons.notes:
        output.warn(note)


def print_compared_outputs(comparisons: Compared, *, as_json: bool) -> None:
    """Print the comparisons of files of outputs."""
    if as_json:
        for row in comparisons.rows:
            emit(row)
        return
    for system, group in groupby(comparisons.rows, key=itemgetter("system")):
        rows = list(group)
        fields = rows[0]
        pairing = f"{fields['task']} by {fields['measure']}, paired by {fields['paired_by']}"
        show_line(f"{system} against {fields['baseline']}: {pairing}")
        _print_table([_format_outputs(row) for row in rows])
    show_line(
        f"Scores and differences in percent. {ON_EXAMPLES} stands on these examples alone (p < 0.05 by "
        f"{_tests(comparisons.rows)}, after Holm's correction over "
        f"{count(len(comparisons.rows), 'test')}); the "
        f"interval (95 %) is over examples; d is Cohen's over examples; gained and lost are answers that "
        f"became right and wrong. One file is one training: no {SURE} is possible."
    )
    _explain_equivalence(comparisons.rows, "examples")


def _format_runs(row: Row) -> dict[str, str]:
    """Return the cells of a comparison of runs, by the head of their column."""
    return {**format_tests(row), "needed": format_seeds_needed(row), **_format_equivalence(row)}


def _format_outputs(row: Row) -> dict[str, str]:
    """Return the cells of a comparison of files of outputs, which are only tested over examples."""
    return {
        **format_scores(row),
        "interval": interval_text(row["low_examples"], row["high_examples"]),
        "d": format_effect(row),
        "p": p_text(row["p_examples"]),
        "p (Holm)": p_text(row["p_examples_holm"]),
        "examples": str(row["examples"]),
        "gained, lost": "–" if row["gained"] is None else f"{row['gained']}, {row['lost']}",
        **_format_equivalence(row),
    }


def _format_equivalence(row: Row) -> dict[str, str]:
    """Return the p of the test of equivalence, if it was requested."""
    return {} if row["margin"] is None else {"p (equivalent)": p_text(row["p_equivalence"])}


def _explain_equivalence(rows: Sequence[Row], sampling: str) -> None:
    margin = rows[0]["margin"]
    if margin is not None:
        show_line(
            f"p (equivalent): two one-sided t-tests (TOST), over {sampling}, that the difference is less "
            f"than {100 * margin:g} points in either direction. If p < 0.05, system and baseline are "
            f"equivalent within this margin. It is not corrected for the number of tests."
        )


def _print_table(lines: Sequence[Mapping[str, str]]) -> None:
    Display().table(list(lines[0]), [list(cells.values()) for cells in lines])


def _identify_pair(row: Row) -> tuple[object, ...]:
    test_set = ("corpus", "treebank", "mixed", "task", "source", "split", "measure")
    return tuple(
        row[name] for name in (*test_set, "encoder", "method", "baseline_encoder", "baseline_method")
    )


def _title(rows: Sequence[Row]) -> str:
    row = rows[0]
    examples = [row["examples"] for row in rows]
    if row["encoder"] == row["baseline_encoder"]:
        encoder = f", {row['encoder']}"
        system = row["method"]
        baseline = row["baseline_method"]
    else:
        encoder = ""
        system = f"{row['encoder']} / {row['method']}"
        baseline = f"{row['baseline_encoder']} / {row['baseline_method']}"
    source = f", source {row['source']}" if row["source"] else ""
    size = count(examples[0], "example") if len(set(examples)) == 1 else f"{min(examples)} examples or more"
    pair = f"{system} against {baseline}"
    return f"{test_set_name(row)}{encoder}{source}: {pair}, {row['measure']} on {row['split']}, {size}"


def _tests(rows: Sequence[Row]) -> str:
    return " or ".join(TESTS[name] for name in dict.fromkeys(row["test"] for row in rows) if name)


def _legend(rows: Sequence[Row], points: float) -> str:
    unit = rows[0]["unit"]
    tests = _tests(rows)
    lines = [
        f"{SURE} is significant over {unit}s and examples: p < 0.05 by the test that crosses both, after "
        f"Holm's correction over all tests of a test set. {ON_EXAMPLES} is significant over the examples of "
        f"these {unit}s only{f' ({tests})' if tests else ''}. Scores and differences in percent, means over "
        f"{unit}s. The interval (95 %) is over both. d is Cohen's over examples. p: over {unit}s, over "
        f"examples, over both, and over both after the correction.",
        f"needed: the number of {unit}s with which a paired t-test over them would detect a difference of "
        f"{points:g} point{'' if points == 1 else 's'} with 80 % power, at the spread measured here.",
    ]
    if all(row["seeds"] < 2 for row in rows):
        lines.append(f"{SURE} is not possible: one {unit} does not show the spread. Train more.")
    return "\n".join(lines)
