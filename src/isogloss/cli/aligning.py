"""Aligning bitext from the command line."""

from collections.abc import Sequence
from pathlib import Path

from isogloss.cli.display import Display, show_line
from isogloss.core.errors import ConfigError
from isogloss.experiments.aligning import AlignmentWanted, align_bitext
from isogloss.experiments.asking import parse_change

COLUMNS = ("languages", "split", "aligner", "pairs", "links")
GOLD = ("gold_pairs", "precision", "recall", "f1", "aer")
"""Columns of bitext that has links of its own."""


def print_alignments(
    wanted: AlignmentWanted, *, out: Path, data: str | None, quiet: bool, as_json: bool
) -> None:
    """Print what each alignment came to, and where its links are."""
    with Display(quiet=quiet or as_json) as display:
        found = align_bitext(wanted, out=out, data=data or "", tell=display.tell)
    if as_json:
        for one in found:
            Display(as_json=True).emit({**one.row, "file": str(one.links)})
        return
    if not quiet:
        known = [name for name in (*COLUMNS, *GOLD) if any(name in one.row for one in found)]
        Display().table(known, [[_cell(one.row.get(name)) for name in known] for one in found])
    for one in found:
        for warning in one.warnings:
            Display(quiet=quiet).say(f"isogloss: {warning}")
        show_line(one.links)


def aligner_table(name: str, changes: Sequence[str]) -> dict[str, object]:
    """Return an aligner as a recipe's [align] says it."""
    table: dict[str, object] = dict(map(parse_change, changes))
    if "name" in table:
        raise ConfigError("--set name=…: the aligner is said by --aligner. Leave it out.")
    return {"name": name, **table}


def _cell(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value
