"""Choosing a model of a folder of runs for languages without labels."""

from collections.abc import Sequence
from itertools import product

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import Output
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.languages import languages_named
from isogloss.core.records import or_none
from isogloss.reports.candidates import RULE, Candidates, all_candidates
from isogloss.reports.choosing import candidate_data, choice_data, choice_tables, regret_tables
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import percent, test_set_name
from isogloss.store.addresses import local_folder


def print_choices(address: str, languages: Sequence[str], *, output: Output) -> None:
    """Print the choice for every language and how good such choices are; for named ones all candidates."""
    with output.progress as display:
        folder = local_folder(address, display.on_progress)
        m = read_measurements(folder, display.on_progress)
        candidates = all_candidates(m, display.on_progress)
        for text in m.unread:
            display.say(f"isogloss: {text}")
    if not candidates:
        raise ConfigError(
            f"{folder}: nothing to choose among: no two models were measured by label-free in one "
            f'target language of one test set. Add [[measure]] name = "label-free" (split = "dev") to the '
            f"recipe, which measures every model in every target language, and run it again."
        )
    languages = languages_named(languages)
    measured = list(dict.fromkeys(code for test_set in candidates for code in test_set.languages))
    check_named("--language", "language of these measurements", measured, *languages)
    if output.as_json:
        _emit(candidates, languages or measured, ranked=bool(languages))
    elif languages:
        for test_set, code in product(candidates, languages):
            _show_candidates(test_set, code)
    else:
        _show(m)


def _emit(candidates: Sequence[Candidates], languages: Sequence[str], *, ranked: bool) -> None:
    """Emit a line for each choice, with all candidates if ``ranked``."""
    for test_set in candidates:
        data = choice_data(test_set)
        for row in data[data["language"].isin(languages)].to_dict("records"):
            event = {str(name): value for name, value in row.items()}
            if ranked:
                ranking = candidate_data(test_set, event["language"]).to_dict("records")
                event["ranking"] = [
                    {str(name): or_none(value) for name, value in candidate.items()} for candidate in ranking
                ]
            emit(event)


def _show(m: Measurements) -> None:
    for table in (*choice_tables(m), *regret_tables(m)):
        show_line(table.title)
        head, *rows = [[cell.text for cell in row] for row in (table.header, *table.rows)]
        Display().table(head, rows)
        show_line(f"{table.caption}\n")


def _show_candidates(test_set: Candidates, code: str) -> None:
    """Print all candidates for a language, the rule's choice first."""
    if code not in test_set.languages:
        return
    data = candidate_data(test_set, code).drop(columns="model").dropna(axis=1, how="all")
    numbers = data.columns.drop(["candidate", RULE])
    texts = data.assign(**{RULE: data[RULE].map("{:+.2f}".format)})
    texts[numbers] = data[numbers].map(percent)
    shown = f"{test_set_name(test_set.about)}, source {test_set.about['source']}"
    show_line(f"{shown}: candidates for {code}, the rule's choice first")
    Display().table([*texts], texts.to_numpy().tolist())
