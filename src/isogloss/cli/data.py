"""Checking described corpora and fetching official files for the command line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, format_count, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.errors import DataError, plain
from isogloss.core.languages import languages_named
from isogloss.core.progress import Progress
from isogloss.data.corpora.described import find_about
from isogloss.data.fetching.downloading import megabytes
from isogloss.data.fetching.official_files import FetchedRelease, existing, fetch
from isogloss.data.fetching.releases import Release, select_releases

if TYPE_CHECKING:
    from isogloss.data.corpora.described import DescribedCorpus
    from isogloss.recipes.described_contents import SplitContents

FETCH_COLUMNS = ("corpus", "part", "languages", "size", "checksum", "address", "place")
MAX_ERRORS_SHOWN = 20
"""Maximum number of row errors printed on the terminal. --json prints all."""

MAX_LISTED_LANGUAGES = 6
"""Maximum number of languages that are listed instead of counted."""


def print_corpus(path: Path, *, data: str, output: OutputOptions) -> None:
    """Print the contents of a described corpus.

    Raises DataError, with the first broken row, if a row does not fit.
    """
    from isogloss.data.corpora.described import list_shipped
    from isogloss.recipes.described_contents import inspect_splits
    from isogloss.recipes.descriptions import describe_corpus

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


def _print_contents(corpus: "DescribedCorpus", splits: Sequence["SplitContents"]) -> None:
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
    texts = [f"{label} {count}" for label, count in list(labels.items())[:MAX_LISTED_LANGUAGES]]
    return ", ".join(texts) + (
        f" and {len(labels) - MAX_LISTED_LANGUAGES} more" if len(labels) > MAX_LISTED_LANGUAGES else ""
    )


def fetch_corpora(
    names: Sequence[str], folder: Path, languages: Sequence[str], *, dry_run: bool, output: OutputOptions
) -> None:
    """Fetch the official files of corpora into a data folder, or print the plan with ``dry_run``."""
    languages = languages_named(languages)
    releases = select_releases(names, languages)
    if dry_run:
        _print_plan(releases, folder, languages, output.events)
        return
    with output.events as display:
        for line in licences(releases):
            display.say(line)
        results = []
        for result in fetch(releases, folder, languages=languages, on_progress=display.on_progress):
            results.append(result)
            display.say(_describe_release(result))
            if output.as_json:
                emit({"event": "fetched", **_facts(result, folder)})
    if not output.as_json:
        _print_sum(results, folder)


def licences(releases: Sequence[Release]) -> list[str]:
    """Return a line for each corpus and licence, with files, size, licence and address."""
    groups: dict[tuple[str, str], list[Release]] = {}
    for release in releases:
        terms = release.licence or find_about(release.corpus).licence
        groups.setdefault((release.corpus, terms), []).append(release)
    return [
        f"{corpus}: {len(files)} file{'s' if len(files) > 1 else ''}, {_sum(files)}. "
        f"Licence: {terms}. {find_about(corpus).url}".rstrip()
        for (corpus, terms), files in groups.items()
    ]


def _print_plan(
    releases: Sequence[Release], folder: Path, languages: Sequence[str], display: Display
) -> None:
    for line in licences(releases):
        display.say(line)
    rows = [(*_row(release), "yes" if existing(release, folder, languages) else "no") for release in releases]
    display.table((*FETCH_COLUMNS, "there"), rows)


def _row(release: Release) -> tuple[str, ...]:
    targets = [release.to] if release.to else [target for _, target in release.take]
    is_counted = len(release.languages) > MAX_LISTED_LANGUAGES
    return (
        release.corpus,
        release.part,
        f"{len(release.languages)} languages" if is_counted else " ".join(release.languages),
        _sum([release]),
        "published" if release.sha256 else "none published",
        release.url,
        " ".join(targets),
    )


def _sum(files: Sequence[Release]) -> str:
    size = sum(file.size or 0 for file in files)
    unsized_files = sum(file.size is None for file in files)
    if not unsized_files:
        return megabytes(size)
    return f"{megabytes(size)} and {unsized_files} of unknown size" if size else "size unknown"


def _describe_release(result: FetchedRelease) -> str:
    release = result.release
    download = result.fetched
    state = "already there" if result.was_there else f"fetched, {megabytes(download.size)}"
    checksum = (
        "checksum as published"
        if download.published
        else f"no published checksum, so the checksum of this download is recorded ({download.sha256[:12]}…)"
    )
    return f"{release.target}: {state}, {checksum}, {format_count(len(download.files), 'file')}"


def _facts(result: FetchedRelease, folder: Path) -> dict[str, object]:
    release = result.release
    download = result.fetched
    return {
        **{name: getattr(release, name) for name in ("corpus", "part", "url")},
        **{"folder": str(folder), "was_there": result.was_there},
        **{name: getattr(download, name) for name in ("size", "sha256", "published")},
        "files": sorted(download.files),
    }


def _print_sum(results: Sequence[FetchedRelease], folder: Path) -> None:
    files = sum(len(result.fetched.files) for result in results)
    fetched_bytes = sum(result.fetched.size for result in results if not result.was_there)
    corpora = ", ".join(dict.fromkeys(result.release.corpus for result in results))
    show_line(f"{folder}: {files} files of {corpora}; {megabytes(fetched_bytes)} fetched.")
    archives = any(result.release.take for result in results)
    hint = f"The archives in {folder / 'downloads'} may be deleted. " if archives else ""
    show_line(f"{hint}Use the files with --data {folder}.")
