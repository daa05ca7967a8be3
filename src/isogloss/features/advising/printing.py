"""Printing advice for a language without labels."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import languages_named
from isogloss.core.records import or_none
from isogloss.data.corpora.own import register_corpus
from isogloss.data.sources import Sources
from isogloss.features.advising.advice import Advice, AdvisedOption, advise
from isogloss.features.advising.evidence import Gain, read_gains
from isogloss.features.advising.measured_gains import measured_gains
from isogloss.features.advising.regret import ADVICE, NOTHING, Regret, held_out_regret
from isogloss.reports.names import and_list, count, language

HEAD = ("option", "gain", "mean, 95 %", "next language, 80 %", "hours", "per hour", "advice")


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """The question: task, language and hours, and where the evidence is read."""

    runs: str | None = None
    task: str = ""
    language: str = ""
    hours: float = 1.0
    minutes: float | None = None
    encoder: str = ""
    corpus: str = ""
    data: str = ""
    evidence: Path | None = None
    against: str = "source-only"


def print_advice(request: AdviceRequest, *, output: OutputOptions) -> None:
    """Print the options, the advice, what would change it, and its regret in languages that were held out.

    Raises ConfigError without a task, with two sources of evidence, or for a corpus without this task.
    """
    with output.progress as display:
        gains = _read_evidence(request, display)
    task = _find_task(request, gains)
    labelled = _count_labelled(request)
    advice = advise(
        task,
        request.language,
        hours=request.hours,
        minutes=request.minutes,
        encoder=request.encoder,
        labelled=labelled,
        gains=gains,
    )
    regrets = held_out_regret(
        task, hours=advice.hours, minutes=advice.minutes, encoder=advice.encoder, gains=gains
    )
    if output.as_json:
        _emit(advice, regrets)
        return
    show_line(_format_title(advice, request, labelled))
    show_line(_describe_evidence(advice))
    Display().table(HEAD, _format_rows(advice))
    for line in _conclude(advice):
        show_line(line)
    _print_regrets(regrets)


def _read_evidence(request: AdviceRequest, display: Display) -> Sequence[Gain]:
    if request.runs is None:
        return read_gains(request.evidence or "")
    if request.evidence is not None:
        raise ConfigError(
            f"advise: evidence is read from the runs {request.runs} or from {request.evidence}. Give either."
        )
    return measured_gains(request.runs, against=request.against, on_progress=display.on_progress)


def _find_task(request: AdviceRequest, gains: Sequence[Gain]) -> str:
    """Return the task of the request, of its corpus, or the only one with evidence."""
    known_tasks = sorted({gain.task for gain in gains})
    if request.task:
        return request.task
    if request.corpus:
        tasks = Sources().corpus(register_corpus(request.corpus, request.data)).tasks
        with_evidence = [task for task in tasks if task in known_tasks]
        if len(with_evidence) == 1:
            return with_evidence[0]
        raise ConfigError(
            f"advise: {request.corpus} has the tasks {', '.join(tasks)}, and evidence is on "
            f"{', '.join(known_tasks)}. Name one with --task."
        )
    if len(known_tasks) == 1:
        return known_tasks[0]
    raise ConfigError(f"advise: evidence is on {', '.join(known_tasks)}. Name one with --task.")


def _count_labelled(request: AdviceRequest) -> int:
    """Return the number of labelled examples of the target in the corpus."""
    if not request.corpus or not request.language:
        return 0
    corpus = register_corpus(request.corpus, request.data)
    sources = Sources(request.data)
    language_code = languages_named([request.language])[0]
    try:
        sources.fingerprint(corpus, language_code, "train")
    except DataError:  # It has no such split. A broken one is an error below.
        return 0
    if sources.lacks_labels(corpus, language_code, "train"):
        return 0
    return len(sources.examples(corpus, language_code, "train"))


def _format_title(advice: Advice, request: AdviceRequest, labelled: int) -> str:
    place = language(advice.target) if advice.target else "a language without labels"
    given = f"{count(labelled, 'example')} of {request.corpus} have labels" if labelled else ""
    is_assumed = request.minutes is None
    unit = "minute" if advice.minutes == 1 else "minutes"
    minutes = f"{advice.minutes:g} {unit} to label an example"
    if is_assumed:
        minutes += ", an assumption (--minutes)"
    facts = "; ".join(part for part in (minutes, given) if part)
    return f"{advice.task} in {place}, within {_format_hours(advice.hours)}: {facts}"


def _describe_evidence(advice: Advice) -> str:
    languages = {gain.language for gain in advice.gains}
    seeds = {gain.seeds for gain in advice.gains}
    fewest = min(seeds)
    of_seeds = count(fewest, "seed") if len(seeds) == 1 else f"{fewest} to {max(seeds)} seeds"
    return (
        f"Evidence: encoder {advice.encoder}, {count(len(languages), 'language')}, {of_seeds} each. Gain in "
        f"points over a source-only model, with intervals of the mean and of the next language."
    )


def _format_rows(advice: Advice) -> list[tuple[str, ...]]:
    return [
        (
            option.name,
            f"{option.gain:+.1f}",
            _format_interval(option.mean_low, option.mean_high),
            _format_interval(option.low, option.high),
            f"{option.hours:.2f}",
            "–" if math.isnan(option.gain_per_hour) else f"{option.gain_per_hour:+.1f}",
            _format_verdict(option, advice),
        )
        for option in advice.options
    ]


def _format_verdict(option: AdvisedOption, advice: Advice) -> str:
    if option is advice.choice:
        return "do this"
    if option.verdict == "helps" and option.hours > advice.hours:
        return f"takes {_format_hours(option.hours)}"
    if option.verdict == "not known":
        return f"don't know: {option.doubt}"
    return option.verdict


def _conclude(advice: Advice) -> list[str]:
    lines = [repr(advice)]
    if advice.choice is not None and advice.choice.needs:
        lines.append(f"It needs {advice.choice.needs}.")
    if advice.equal_options:
        names = [f"{option.name} ({_format_hours(option.hours)})" for option in advice.equal_options]
        lines.append(f"Not distinguishable from it over these languages: {and_list(names)}")
    measured = [option for option in advice.options if not math.isnan(option.measured)]
    if measured:
        gains = and_list(f"{option.name} {option.measured:+.1f}" for option in measured)
        lines.append(f"Measured in {language(advice.target)} itself: {gains}")
    changes = advice.changes()
    if changes:
        lines.append("What would change the advice:")
        lines += [f"  {text}" for text in changes]
    return lines


def _print_regrets(regrets: Sequence[Regret]) -> None:
    """Print the regret of advice, of always the same option and of nothing."""
    if not regrets:
        show_line("Regret is not known: too few languages to hold one out.")
        return
    advice, *others = sorted(regrets, key=lambda regret: (regret.rule != ADVICE, regret.regret))
    show_line(
        f"\nRegret in points, each language held out: what is lost to the best option there. Advice knew the "
        f"best option in {advice.best} of {advice.languages} languages, and nothing in {advice.unknown}."
    )
    Display().table(
        ("rule", "regret", "mean (95 %)", "worst", "languages"),
        [
            (
                regret.rule if regret.rule in (ADVICE, NOTHING) else f"always {regret.rule}",
                f"{regret.regret:.1f}",
                _format_interval(regret.low, regret.high),
                f"{regret.worst:.1f}",
                regret.languages,
            )
            for regret in (advice, *others)
        ],
    )


def _emit(advice: Advice, regrets: Sequence[Regret]) -> None:
    for option in advice.options:
        row = asdict(option) | {"verdict": option.verdict, "doubt": option.doubt}
        row |= {"advised": option is advice.choice, "gain_per_hour": option.gain_per_hour}
        emit({name: or_none(value) for name, value in row.items()})
    emit({"advice": repr(advice), "changes": advice.changes()})
    for regret in regrets:
        emit({name: or_none(value) for name, value in regret._asdict().items()})


def _format_interval(low: float, high: float) -> str:
    return "–" if math.isnan(low) else f"{low:+.1f} to {high:+.1f}"


def _format_hours(hours: float) -> str:
    return "1 hour" if hours == 1 else f"{hours:.1f} hours"
