"""Aligning bitext, translating corpora or text, and fetching official files for the command line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, format_count, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.errors import ConfigError, DataError, plain
from isogloss.core.languages import languages_named
from isogloss.core.progress import Progress
from isogloss.core.sizes import format_size
from isogloss.data.corpora.described import find_about
from isogloss.data.fetching.official_files import FetchedRelease, existing, fetch
from isogloss.data.fetching.releases import Release, select_releases
from isogloss.recipes.request import parse_change, unique_keys

if TYPE_CHECKING:
    from isogloss.data.corpora.described import DescribedCorpus
    from isogloss.engine.single import BitextToAlign, SplitToTranslate, TranslationDirection
    from isogloss.recipes.described_contents import SplitContents

FETCH_COLUMNS = ("corpus", "part", "languages", "size", "checksum", "address", "place")
MAX_ERRORS_SHOWN = 20
"""Maximum number of row errors printed on the terminal. --json prints all."""

MAX_LISTED_LANGUAGES = 6
"""Maximum number of languages that are listed instead of counted."""

ALIGNMENT_COLUMNS = ("languages", "split", "aligner", "pairs", "links")
GOLD_COLUMNS = ("gold_pairs", "precision", "recall", "f1", "aer")
"""Columns for bitext with gold links."""

TRANSLATE_FOLDER = Path("runs/translate")
"""Default folder of translated corpora."""

COUNT_COLUMNS = ("examples", "translated", "lost", "cuts", "tagged")
TRANSLATION_COLUMNS = ("corpus", "languages", "split", "translator", *COUNT_COLUMNS)
REFERENCE_COLUMNS = ("metric", "score", "bleu")
"""Columns for bitext, which has reference translations."""


def print_alignments(
    request: "BitextToAlign", *, folder: Path, data: str | None, output: OutputOptions
) -> None:
    """Align bitext, and print the measures and the file of each alignment."""
    from isogloss.engine.single import align_bitext

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
            columns, [[_cell(alignment.row.get(name)) for name in columns] for alignment in alignments]
        )
    for alignment in alignments:
        for warning in alignment.warnings:
            output.warn(warning)
        show_line(alignment.file)


def recipe_table(changes: Sequence[str], fields: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """Return a recipe's table from ``--set`` changes and from fields with own options: (option, value).

    Raises ConfigError if both set one field.
    """
    table: dict[str, object] = unique_keys("--set", (parse_change(change) for change in changes))
    for field, (option, _) in fields.items():
        if field in table:
            raise ConfigError(f"--set {field}=… and {option} both set this field. Remove one of them.")
    return {field: value for field, (_, value) in fields.items() if value or field == "name"} | table


def print_split(
    direction: "TranslationDirection",
    request: "SplitToTranslate",
    *,
    folder: Path,
    data: str | None,
    output: OutputOptions,
) -> None:
    """Translate a split, and print its measures and the file of examples."""
    from isogloss.engine.single import translate_split

    with output.progress as display:
        translation = translate_split(
            direction, request, folder=folder, data=data or "", on_progress=display.on_progress
        )
        for warning in translation.warnings:
            display.say(f"isogloss: {warning}")
    if output.as_json:
        emit({**translation.row, "warnings": translation.warnings, "file": str(translation.file)})
        return
    if not output.quiet:
        columns = [name for name in (*TRANSLATION_COLUMNS, *REFERENCE_COLUMNS) if name in translation.row]
        Display().table(columns, [[_cell(translation.row[name]) for name in columns]])
    show_line(translation.file)


def print_lines(
    direction: "TranslationDirection", name: str, *, target: Path | None, output: OutputOptions
) -> None:
    """Translate a text line by line, and print the lines or write all of them to a file, or none."""
    from isogloss.cli.using import check_out, open_file
    from isogloss.engine.single import line_translator

    check_out(target, name)
    file = open_file(name)
    with _work_folder(target) as folder, Display(quiet=output.quiet or target is None) as display:
        translate = line_translator(direction, folder, on_progress=display.on_progress)
        lines = (line.rstrip("\r\n") for line in file.read())
        if target is None:
            for line in translate(lines):
                emit({"text": line}) if output.as_json else show_line(line)
            return
        with atomic_file(target.parent, target.name) as stream:
            for line in translate(lines):
                with writing(target):
                    stream.write(f"{line}\n")
    if output.as_json:
        emit({"file": str(target)})
    elif not output.quiet:
        show_line(target)


@contextmanager
def _work_folder(target: Path | None) -> Iterator[Path]:
    """Yield a work folder for translations. Next to an output file, it survives an interruption."""
    if target is None:
        with TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = target.with_name(f".{target.name}.translating")
    yield folder
    rmtree(folder, ignore_errors=True)


def _cell(value: object) -> object:
    return f"{value:.3f}" if isinstance(value, float) else value


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
