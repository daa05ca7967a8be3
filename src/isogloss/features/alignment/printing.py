"""Print alignments."""

from pathlib import Path

from isogloss.cli.display import Display, emit, round_fraction, show_line
from isogloss.cli.options import OutputOptions
from isogloss.features.alignment.single_run import BitextToAlign, align_bitext

ALIGNMENT_COLUMNS = ("languages", "split", "aligner", "pairs", "links")
GOLD_COLUMNS = ("gold_pairs", "precision", "recall", "f1", "aer")
"""Columns for bitext with gold links."""


def print_alignments(
    request: BitextToAlign, *, folder: Path, data: str | None, output: OutputOptions
) -> None:
    """Align bitext, and print the measures and the file of each alignment."""
    with output.progress as display:
        alignments = align_bitext(request, folder=folder, data=data or "", on_progress=display.on_progress)
    if output.as_json:
        for alignment in alignments:
            emit({**alignment.row, "file": str(alignment.file)})
        return
    if not output.quiet:
        columns = [
            name
            for name in (*ALIGNMENT_COLUMNS, *GOLD_COLUMNS)
            if any(name in alignment.row for alignment in alignments)
        ]
        Display().table(
            columns,
            [[round_fraction(alignment.row.get(name)) for name in columns] for alignment in alignments],
        )
    for alignment in alignments:
        for warning in alignment.warnings:
            output.warn(warning)
        show_line(alignment.file)
