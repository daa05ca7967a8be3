"""The verb fetch: what is downloaded, under which licence, from where and to where."""

from collections.abc import Sequence
from pathlib import Path

from isogloss.cli.display import Display, show_line
from isogloss.data import CORPORA
from isogloss.data.downloading import megabytes
from isogloss.data.fetching import Result, fetch, is_there
from isogloss.data.releases import Release, chosen

HEADS = ("corpus", "part", "languages", "size", "checksum", "address", "place")
MANY = 6
"""More languages than this are counted, not listed."""


def fetch_corpora(
    names: Sequence[str],
    folder: Path,
    languages: Sequence[str],
    *,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Fetch the official files of corpora into a data folder, or with ``dry_run`` say what that would be."""
    wanted = chosen(names, languages)
    if dry_run:
        _print_plan(wanted, folder, languages, as_json=as_json)
        return
    with Display(quiet=quiet, as_json=as_json) as display:
        for line in licences(wanted):
            display.say(line)
        results = []
        for result in fetch(wanted, folder, languages=languages, tell=display.tell):
            results.append(result)
            display.say(_done(result))
            if as_json:
                display.emit({"event": "fetched", **_facts(result, folder)})
    if not as_json:
        _print_sum(results, folder)


def licences(wanted: Sequence[Release]) -> list[str]:
    """Give a line for each corpus and licence: who made it, under which terms, how much there is to load."""
    groups: dict[tuple[str, str], list[Release]] = {}
    for release in wanted:
        terms = release.licence or CORPORA[release.corpus].licence
        groups.setdefault((release.corpus, terms), []).append(release)
    return [
        f"{corpus}: {len(files)} file{'s' if len(files) > 1 else ''}, {_sum(files)}. "
        f"Licence: {terms}. {CORPORA[corpus].url}".rstrip()
        for (corpus, terms), files in groups.items()
    ]


def _print_plan(wanted: Sequence[Release], folder: Path, languages: Sequence[str], *, as_json: bool) -> None:
    display = Display(as_json=as_json)
    for line in licences(wanted):
        display.say(line)
    display.table((*HEADS, "there"), [(*_row(one), _there(one, folder, languages)) for one in wanted])


def _there(release: Release, folder: Path, languages: Sequence[str]) -> str:
    return "yes" if is_there(release, folder, languages) else "no"


def _row(release: Release) -> tuple[str, ...]:
    places = [release.to] if release.to else [place for _, place in release.take]
    many = len(release.languages) > MANY
    return (
        release.corpus,
        release.part,
        f"{len(release.languages)} languages" if many else " ".join(release.languages),
        _sum([release]),
        "published" if release.sha256 else "none published",
        release.url,
        " ".join(places),
    )


def _sum(files: Sequence[Release]) -> str:
    known = sum(file.size or 0 for file in files)
    unknown = sum(file.size is None for file in files)
    if not unknown:
        return megabytes(known)
    return f"{megabytes(known)} and {unknown} of unknown size" if known else "size unknown"


def _done(result: Result) -> str:
    release, fetched = result.release, result.fetched
    how = "already there" if result.was_there else f"fetched, {megabytes(fetched.size)}"
    sure = (
        "checksum as published"
        if fetched.published
        else f"no published checksum: the one of this download is recorded ({fetched.sha256[:12]}…)"
    )
    return f"{release.place}: {how}, {sure}, {len(fetched.files)} file{'s' if len(fetched.files) > 1 else ''}"


def _facts(result: Result, folder: Path) -> dict[str, object]:
    release, fetched = result.release, result.fetched
    return {
        "corpus": release.corpus,
        "part": release.part,
        "url": release.url,
        "folder": str(folder),
        "was_there": result.was_there,
        "size": fetched.size,
        "sha256": fetched.sha256,
        "published": fetched.published,
        "files": sorted(fetched.files),
    }


def _print_sum(results: Sequence[Result], folder: Path) -> None:
    files = sum(len(result.fetched.files) for result in results)
    loaded = sum(result.fetched.size for result in results if not result.was_there)
    corpora = ", ".join(dict.fromkeys(result.release.corpus for result in results))
    show_line(f"{folder}: {files} files of {corpora}; {megabytes(loaded)} fetched.")
    if any(result.release.take for result in results):
        show_line(
            f"The archives in {folder / 'downloads'} may be deleted. Use the files with --data {folder}."
        )
    else:
        show_line(f"Use the files with --data {folder}.")
