"""Fetching the official files of corpora, as the command line prints it."""

from collections.abc import Sequence
from pathlib import Path

from isogloss.cli.display import Display, emit, format_count, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.languages import languages_named
from isogloss.core.sizes import format_size
from isogloss.data.corpora.own import find_about
from isogloss.features.fetching.official_files import FetchedRelease, existing, fetch
from isogloss.features.fetching.releases import Release, select_releases

FETCH_COLUMNS = ("corpus", "part", "languages", "size", "checksum", "address", "place")

MAX_LISTED_LANGUAGES = 6
"""Maximum number of languages that are listed instead of counted."""


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
        return format_size(size)
    return f"{format_size(size)} and {unsized_files} of unknown size" if size else "size unknown"


def _describe_release(result: FetchedRelease) -> str:
    release = result.release
    download = result.fetched
    state = "already there" if result.was_there else f"fetched, {format_size(download.size)}"
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
    show_line(f"{folder}: {files} files of {corpora}; {format_size(fetched_bytes)} fetched.")
    archives = any(result.release.take for result in results)
    hint = f"The archives in {folder / 'downloads'} may be deleted. " if archives else ""
    show_line(f"{hint}Use the files with --data {folder}.")
