"""The contents of a described corpus, as the command line prints them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.errors import DataError, plain
from isogloss.core.progress import Progress
from isogloss.features.described_corpora.contents import SplitContents, inspect_splits
from isogloss.features.described_corpora.corpus import DescribedCorpus
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.described_corpora.shipped_corpora import list_shipped

MAX_ERRORS_SHOWN = 20
"""Maximum number of row errors printed on the terminal. --json prints all."""

MAX_LISTED_LABELS = 6
"""Maximum number of labels that are listed instead of counted."""


def print_corpus(path: Path, *, data: str, output: OutputOptions) -> None:
    """Print the contents of a described corpus.

    Raises DataError, with the first broken row, if a row does not fit.
    """
    path = list_shipped().get(str(path), path)
    corpus = describe_corpus(path, data)
    splits: list[SplitContents] = []
    with output.progress as display:
        for split in inspect_splits(corpus, data):
            splits.append(split)
            remark = f"{split.language} {split.split}"
            display.on_progress(Progress(f"reading {corpus.name}", len(splits), len(splits), remark))
            if output.as_json:
                emit(split._asdict())
    errors = [error for split in splits for error in split.errors]
    if not output.as_json and not output.quiet:
        _print_contents(corpus, splits)
    for error in errors[:MAX_ERRORS_SHOWN]:
        output.progress.say(f"isogloss: {error}")
    broken_splits = sum(bool(split.errors) for split in splits)
    if count := sum(not split.is_readable for split in splits):
        raise DataError(f"{path}: {count} of {len(splits)} splits cannot be read. Correct their files.")
    if errors and corpus.bad_rows == "refuse":
        more = (
            f" (--json prints all, the terminal {MAX_ERRORS_SHOWN})" if len(errors) > MAX_ERRORS_SHOWN else ""
        )
        raise DataError(
            f"{path}: {len(errors):,} row{'s do' if len(errors) > 1 else ' does'} not fit, in "
            f"{broken_splits} of {len(splits)} splits{more}. Correct them, or skip such rows "
            f'(bad_rows = "skip").'
        )
    if not splits:
        raise DataError(
            f"{path}: none of its files was found: {', '.join(corpus.paths.values())}. Check the paths, or "
            f"--data."
        )


def _print_contents(corpus: DescribedCorpus, splits: Sequence[SplitContents]) -> None:
    kind = f"{corpus.kind}, {corpus.tasks[0]}, read as {corpus.format}"
    rules = f"{len(corpus.labels):,} rules from word to lemma"
    labels = [rules] if corpus.predicts == "lemma" else corpus.labels
    none = "options, counted from 0" if corpus.kind == "choice" else "none"
    show_line(plain(f"{corpus.name}: {kind}. Labels: {', '.join(labels) or none}."))
    rows = [
        (*split[:3], _counts(split.labels), split.repeated, split.trained, split.first[:40])
        for split in splits
    ]
    Display().table(("language", "split", "examples", "labels", "repeated", "trained", "first"), rows)
    for remark in dict.fromkeys(remark for split in splits for remark in split.remarks):
        show_line(plain(remark))


def _counts(labels: Mapping[str, int]) -> str:
    texts = [f"{label} {count}" for label, count in list(labels.items())[:MAX_LISTED_LABELS]]
    return ", ".join(texts) + (
        f" and {len(labels) - MAX_LISTED_LABELS} more" if len(labels) > MAX_LISTED_LABELS else ""
    )
