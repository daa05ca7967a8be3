"""The command that tests differences between systems."""

from pathlib import Path

import typer

from isogloss.cli.options import STUDY, OutputOptions, verb, with_groups
from isogloss.core.errors import ConfigError
from isogloss.recipes.recipe_text import QUICKSTART

verbs = typer.Typer()


@verb(verbs, STUDY, "isogloss compare runs/quickstart --against source-only")
@with_groups
def compare(
    runs: list[str],
    against: str = "",
    predictions: bool = False,
    by: str = "",
    gold: Path | None = None,
    measure: str = "",
    split: str = "",
    points: float = 1.0,
    margin: float | None = None,
    folder: str = QUICKSTART,
    *,
    output: OutputOptions,
) -> None:
    """Test differences from a baseline per language, over seeds and examples: p, interval, power.

    p is computed over seeds (t-test), over examples (paired t-test for means, permutation test for F1) and
    over both (min F'), with Holm's correction over a test set. Stored predictions are used, so nothing is
    run again. Files of outputs (--predictions) have one seed each, so they are only tested over examples.
    """
    from isogloss.features.comparing import functions
    from isogloss.features.comparing.printing import print_compared_outputs, print_comparisons

    share = None if margin is None else margin / 100
    if predictions:
        if split or points != 1.0 or folder != QUICKSTART:
            raise ConfigError("--split, --points and --in apply to runs. Remove them, or --predictions.")
        comparison = functions.compare_outputs(
            runs, against=against, gold=gold or "", by=by, measure=measure, margin=share
        )
        print_compared_outputs(comparison, as_json=output.as_json)
        return
    if not against:
        raise ConfigError(
            "missing option '--against': the baseline of the comparison. See: isogloss compare --help"
        )
    if by or gold:
        raise ConfigError("--by and --gold apply to files of outputs. Add --predictions, or remove them.")
    with output.progress as display:
        comparison = functions.compare_runs(
            runs,
            against=against,
            measure=measure,
            split=split,
            points=points,
            margin=share,
            folder=folder,
            on_progress=display.on_progress,
        )
    print_comparisons(comparison, points=points, output=output)
