"""Printing choices of models for languages without labels."""

from collections.abc import Sequence
from itertools import product

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.languages import languages_named
from isogloss.core.records import or_none
from isogloss.features.choosing.candidates import RULE, Candidates, all_candidates
from isogloss.features.choosing.choices import (
    choice_data,
    choice_tables,
    explain_missing_choice,
    list_candidates,
    regret_tables,
)
from isogloss.reports.frames import list_columns
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import percent, test_set_name
from isogloss.store import local_folder

EITHER = (
    "choose: give either a folder of runs (isogloss choose runs/mine), or source languages and a target "
    "(isogloss choose --source en,ar,hi --language sw)."
)


def print_choices(address: str | None, languages: Sequence[str], *, output: OutputOptions) -> None:
    """Print the choice for every language and how good such choices are.

    For given ``languages``, all candidates are printed. Without candidates, the reason and what to do are
    printed. Raises ConfigError without an address.
    """
    if address is None:
        raise ConfigError(EITHER)
    with output.progress as display:
        folder = local_folder(address, display.on_progress)
        measurements = read_measurements(folder, display.on_progress)
        candidates = all_candidates(measurements, display.on_progress)
        for text in measurements.unread:
            display.say(f"isogloss: {text}")
    if candidates:
        _print_ranked(candidates, measurements, languages, address, output=output)
    elif output.as_json:
        emit({"note": explain_missing_choice(measurements)})
    else:
        show_line(f"{folder}: {explain_missing_choice(measurements)}")


def _print_ranked(
    candidates: Sequence[Candidates],
    measurements: Measurements,
    languages: Sequence[str],
    address: str,
    *,
    output: OutputOptions,
) -> None:
    languages = languages_named(languages)
    measured_languages = list(
        dict.fromkeys(target for test_set in candidates for target in test_set.languages)
    )
    check_named("--language", "language of these measurements", measured_languages, *languages)
    if output.as_json:
        _emit(candidates, languages or measured_languages, with_ranking=bool(languages))
        return
    if not languages:
        _show(measurements)
    for test_set, target in product(candidates, languages):
        _show_candidates(test_set, target)
    for test_set in candidates:
        _show_ensembles(test_set, languages or measured_languages, address)


def _emit(candidates: Sequence[Candidates], languages: Sequence[str], *, with_ranking: bool) -> None:
    for test_set in candidates:
        data = choice_data(test_set)
        for row in data[data["language"].isin(languages)].to_dict("records"):
            event = {str(name): value for name, value in row.items()}
            if with_ranking:
                ranking = list_candidates(test_set, event["language"]).to_dict("records")
                event["ranking"] = [
                    {str(name): or_none(value) for name, value in candidate.items()} for candidate in ranking
                ]
            emit(event)


def _show(measurements: Measurements) -> None:
    for table in (*choice_tables(measurements), *regret_tables(measurements)):
        show_line(table.title)
        head, *rows = [[cell.text for cell in row] for row in (table.header, *table.rows)]
        Display().table(head, rows)
        show_line(f"{table.caption}\n")


def _show_candidates(test_set: Candidates, language_code: str) -> None:
    if language_code not in test_set.languages:
        return
    data = list_candidates(test_set, language_code).drop(columns="model").dropna(axis=1, how="all")
    numbers = data.columns.drop(["candidate", RULE, "score"], errors="ignore")
    texts = data.assign(**{name: data[name].map("{:+.2f}".format) for name in (RULE, *numbers)})
    if "score" in data:
        texts["score"] = data["score"].map(percent)
    title = f"{test_set_name(test_set.about)}, source {test_set.about['source']}"
    show_line(f"{title}: candidates for {language_code}, the rule's choice first")
    Display().table(list_columns(texts), texts.to_numpy().tolist())


def _show_ensembles(test_set: Candidates, languages: Sequence[str], address: str) -> None:
    """Print the command that predicts with the mean of all models of a language."""
    data = choice_data(test_set)
    data = data[data["language"].isin(languages) & data["ensemble"].map(bool)]
    for _, group in data.groupby("ensemble", sort=False):
        runs = [f"{address.rstrip('/')}/{model}" for model in group["ensemble"].iloc[0]]
        show_line(
            f"Without a choice, for {', '.join(group['language'])}: the mean of the probabilities of all "
            f"{len(runs)} models\n  isogloss predict {' '.join(runs)} FILE"
        )
