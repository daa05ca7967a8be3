"""Comparisons of runs and of files of outputs, as functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Rate, Weight
from isogloss.recipes.recipe_text import QUICKSTART
from isogloss.store import local_folder

if TYPE_CHECKING:
    from isogloss.reports.comparison import Compared


@checks_arguments
def compare_runs(
    runs: str | Path | Sequence[str | Path],
    *,
    against: str,
    measure: str = "",
    split: str = "",
    points: Rate = 1.0,
    margin: Weight | None = None,
    folder: str | Path = QUICKSTART,
    on_progress: OnProgress = no_progress,
) -> "Compared":
    """Compare the systems of runs with a baseline, each with all its seeds, on every test set and language.

    ``runs`` are folders of runs, folders of single runs, their URLs, or (prefixes of) ids of runs in
    ``folder``. ``against`` is a method as the report names it (each encoder's own), an encoder (each
    method's own), "ENCODER / METHOD", or the id of a run. ``measure`` is each task's main metric and
    ``split`` its test split (else dev), unless named.

    The ``frame`` of the result has a row for each system and language: ``difference`` (0 to 1), its 95 %
    interval (``low``, ``high``), Cohen's d (``effect``), p over seeds (``p_units``), examples
    (``p_examples``), both (``p_value``) and corrected (``p_holm``), and the seeds that would detect
    ``points`` percentage points (``seeds_needed``). With a ``margin`` (0.01 is one point) it has the p of the
    test that both are equivalent within it (``p_equivalence``). ConfigError if nothing can be compared.

    Device: none. Cost: reads the records, and the predictions of the runs compared.

    >>> compared = isogloss.compare_runs("runs/quickstart", against="source-only")   # doctest: +SKIP
    >>> compared.frame[["language", "method", "difference", "p_holm"]]          # doctest: +SKIP
    """
    from isogloss.features.comparing import compared_runs

    default = local_folder(folder, on_progress)
    names_of = [runs] if isinstance(runs, str | Path) else runs
    folders, names = compared_runs.folders_and_runs(
        [local_folder(name, on_progress) for name in names_of], default
    )
    if default not in folders and folder != QUICKSTART:
        raise ConfigError(f"--in {folder}: whatever is compared has its own folder. Remove it.")
    request = compared_runs.ComparisonRequest(
        against=against, measure=measure, split=split, points=points, margin=margin
    )
    return compared_runs.compare_runs(folders, names, request, on_progress)


@checks_arguments
def compare_outputs(
    files: str | Path | Sequence[str | Path],
    *,
    against: str | Path = "",
    gold: str | Path = "",
    by: str = "",
    measure: str = "",
    margin: Weight | None = None,
) -> "Compared":
    """Compare files of outputs, of isogloss or other programs, with a baseline's, by language, over examples.

    ``files`` have a JSON object for each example, as ``isogloss predict`` (with ``--json``) and
    lm-evaluation-harness write them; ``against`` is one of them (default: the last). ``gold`` is a file
    of gold answers, where the outputs have none. ``by`` pairs examples by "id" or by "order". Default: by
    id, where all have one. ``measure`` is the main one of the answers' task, unless named; the column
    ``task`` says which task the answers were taken for.

    The ``frame`` of the result has a row for each file and language, and for the mean of several: both
    scores, the ``difference`` (0 to 1) with its 95 % interval over examples (``low_examples``,
    ``high_examples``), p over examples (``p_examples``, corrected ``p_examples_holm``), answers that became
    right (``gained``), wrong (``lost``) and other (``changed``), and with a ``margin`` the p of the test that
    both are equivalent within it (``p_equivalence``). DataError, with file and line, where files do not fit
    or a sample has no finite number; ConfigError for a single file or an unknown measure.

    Device: none. Cost: one pass over the files; the permutation test of F1 has 1,000 rounds.

    >>> compared = isogloss.compare_outputs(["ours.jsonl", "theirs.jsonl"])     # doctest: +SKIP
    >>> compared.frame[["system", "language", "difference", "p_examples_holm"]] # doctest: +SKIP
    """
    from isogloss.data.files import disk_file
    from isogloss.features.comparing.compared_outputs import compare_outputs as compare_files

    names = [files] if isinstance(files, str | Path) else list(files)
    baseline = str(against or next(reversed(names), ""))
    systems = [disk_file(Path(name)) for name in names if str(name) != baseline]
    if not systems:
        raise ConfigError("compare: one file alone. Give two: what is compared, and the baseline.")
    right = disk_file(Path(gold)) if gold else None
    return compare_files(
        systems, disk_file(Path(baseline)), gold=right, by=by, measure=measure, margin=margin
    )
