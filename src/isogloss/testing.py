"""Laws that parts of other packages must keep, for the tests of these packages.

Each function takes a part and raises ``LawBroken`` with what was expected and what was found. It needs no
labels and no network: it works on the built-in languages with the shipped encoder, in a folder of its caller,
and takes some seconds.

    from isogloss.testing import check_method
    from my_package import LabelSmoothing

    def test_label_smoothing(tmp_path):
        check_method(LabelSmoothing(), tmp_path, neutral=LabelSmoothing(smoothing=0))
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.api import run
from isogloss.core.errors import IsoglossError
from isogloss.core.processes import Interrupted
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import RECORD
from isogloss.data.corpus import Corpus, Split
from isogloss.data.examples import Example, Translation
from isogloss.data.files import DiskFolder
from isogloss.data.formats.word_links import pair_words
from isogloss.diagnostics.setting import Diagnostic
from isogloss.encoders.family import Model
from isogloss.encoders.folders import shipped_folder
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.functional.models import load_corpus
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.verdicts import Claim
from isogloss.tasks.batch import collate
from isogloss.tasks.task import Task, all_measures
from isogloss.training.setting import Method
from isogloss.translators.setting import TranslateSetting, Translator

STUDY: Mapping[str, Any] = {
    "title": "Laws",
    "encoder": "shipped",
    "grid": {
        **{"corpus": "ud", "task": "upos", "source": "qaa", "targets": ["qab"], "seeds": [0]},
        **{"examples": 16, "dev_examples": 8},
        "optimization": {"epochs": 2, "batch_size": 8, "precision": "float32", "checkpoint_every": 1},
        "method": [{"name": "source-only"}],
    },
    "measure": [{"name": "scores", "examples": 8}],
}
"""A recipe with one model of 16 sentences."""

CLOSE = 1e-6
"""Scores that are computed in a different order may differ by this much."""


class LawBroken(AssertionError):  # noqa: N818 (a failed assertion, not an error of the program)
    """A part does not keep a law."""


def check_method(
    method: Method,
    folder: Path,
    *,
    neutral: Method | None = None,
    study: Mapping[str, Any] = STUDY,
) -> None:
    """Check a method of training.

    - Its records and weights depend only on its content: two trainings agree in every byte.
    - A training that is interrupted and resumed ends with the same bytes.
    - ``neutral``, the setting in which the method should change nothing, has the weights of source-only.

    ``study`` is a recipe as a dict. Its grid trains source-only, then the method, which may start from it.
    """
    baseline_files = _train(study, [], folder / "resumed")
    trained_files = _train(study, [method], folder / "first")
    _expect_equal(trained_files, _train(study, [method], folder / "second"), "trained twice")
    if not trained_files.keys() - baseline_files.keys():
        return
    if not _is_interrupted(study, method, folder / "resumed"):
        raise LawBroken(f"{method}: its training reported no progress, so that nobody can follow or end it.")
    _expect_equal(trained_files, _train(study, [method], folder / "resumed"), "interrupted and resumed")
    if neutral is not None:
        neutral_files = _train(study, [neutral], folder / "neutral")
        _expect(
            _weights(neutral_files),
            _weights(baseline_files),
            f"weights of {neutral} and of the study's methods",
        )


def check_diagnostic(
    diagnostic: Diagnostic, folder: Path, *, study: Mapping[str, Any] = STUDY
) -> Sequence[Mapping[str, object]]:
    """Check a measurement and return its rows.

    It returns rows; two measurements agree in every byte; the models that it measures stay as they are.
    """
    with_scores = {**study, "measure": [*study["measure"], diagnostic]}
    plain_files = _files_of(_run(study, folder / "plain"))
    measured_files = _files_of(_run(with_scores, folder / "first"))
    _expect_equal(measured_files, _files_of(_run(with_scores, folder / "second")), "measured twice")
    _expect_equal(
        plain_files,
        {name: measured_files.get(name, "") for name in plain_files},
        "models with and without it",
    )
    rows = [
        row
        for measurement in read_measurements(folder / "first").finished(diagnostic.name)
        for row in measurement.record.rows
    ]
    if not rows:
        raise LawBroken(f"{diagnostic}: it measured nothing. Expected: rows about each model.")
    return rows


def check_task(task: Task, examples: Sequence[Example], *, encoder: str | Path = "") -> None:
    """Check a task on some labelled examples.

    - Every example has rows, each of at most ``limit`` subwords.
    - A head depends only on its seed; the loss is a number and has gradients.
    - Answers do not depend on the order of rows.
    - Gold answers score as high as answers can, and contributions add up to the score.
    """
    source = encoder or shipped_folder()
    tokenizer = load_tokenizer(source)
    rows = task.encode(examples, tokenizer, limit=task.limit, overlap=task.overlap)
    _expect({row.example for row in rows}, set(range(len(examples))), "examples with rows")
    longest = max(len(text.subwords) for row in rows for text in row.texts())
    if longest > task.limit:
        raise LawBroken(f"{task.name}: a row has {longest} subwords, more than the limit of {task.limit}.")
    model, again = (task.head(source, seed=1) for _ in range(2))
    _expect_equal(_digests(model), _digests(again), "heads of one seed")
    model.eval()
    batch = collate(rows, padding=tokenizer.pad_token_id)
    loss = task.loss(model, batch)
    torch.autograd.backward(loss)
    if not loss.isfinite() or not any(weight.grad is not None for weight in model.parameters()):
        raise LawBroken(f"{task.name}: a loss of {float(loss)}. Expected: a finite number with gradients.")
    scores = torch.split(task.scores(model, batch).detach(), [row.scored for row in rows])
    order = random.Random(0).sample(range(len(rows)), len(rows))
    _expect(
        task.decode(examples, [rows[index] for index in order], [scores[index] for index in order]),
        task.decode(examples, rows, scores),
        "answers of rows in another order",
    )
    gold = task.gold(examples)
    gold_score = task.score(gold, gold)
    if abs(gold_score - 1) > CLOSE:
        raise LawBroken(f"{task.name}: gold answers have a score of {gold_score}. Expected: 1.")
    predictions = task.decode(examples, rows, scores)
    total = all_measures(task, gold, predictions)[task.metric]
    if abs(total - task.score(gold, predictions)) > CLOSE:
        raise LawBroken(
            f"{task.name}: contributions add up to {total}, the score is {task.score(gold, predictions)}."
        )


def check_corpus(
    corpus: Corpus, data: Path, folder: Path, *, languages: Sequence[str], splits: Sequence[Split]
) -> None:
    """Check a corpus on the files below ``data``.

    Each split has examples with unique ids; what ``write`` writes is read back unchanged.
    """
    for language in languages:
        for split in splits:
            examples = list(corpus.read(DiskFolder(data), language, split))
            where = f"{corpus.name} {language} {split}"
            if not examples:
                raise LawBroken(f"{where}: no examples.")
            ids = [example.id for example in examples]
            if len(set(ids)) < len(ids):
                raise LawBroken(f"{where}: {len(ids)} examples have {len(set(ids))} different ids.")
            path = folder / corpus.path(language, split)
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = corpus.write(examples, language)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            try:
                stored_examples = list(corpus.read(DiskFolder(folder), language, split))
            except IsoglossError as error:
                raise LawBroken(f"{where}: what was written to {path} is not read: {error}") from error
            _expect(stored_examples, examples, f"{where}: what was written")


def check_aligner(aligner: Aligner, *, encoder: str = "") -> None:
    """Check a word aligner: an alignment for each pair, sorted links between words, twice the same."""
    pairs = list(_bitext())
    setting = AlignSetting(pairs=pairs, languages=("qaa", "qab"), encoder=encoder, precision="float32")
    alignments = aligner.align(setting)
    _expect(len(alignments), len(pairs), "alignments")
    for pair, links in zip(pairs, alignments, strict=True):
        source_words, target_words = pair_words(pair)
        outside = [
            link
            for link in links.links
            if not (0 <= link[0] < len(source_words) and 0 <= link[1] < len(target_words))
        ]
        if outside:
            raise LawBroken(f"{aligner}: links {outside} of words that are not there: {pair}.")
        _expect(list(links.links), sorted(set(links.links)), f"links of {pair.id}")
        if links.scores and len(links.scores) != len(links.links):
            raise LawBroken(f"{aligner}: {len(links.scores)} scores of {len(links.links)} links.")
    _expect(aligner.align(setting), alignments, "alignments made twice")
    _expect(aligner.align(replace(setting, pairs=[])), [], "alignments of no pairs")


def check_translator(
    translator: Translator,
    folder: Path,
    *,
    source: str = "qaa",
    target: str = "qab",
    model: str = "",
    texts: Sequence[str] = (),
) -> None:
    """Check a translator: one line for each text, in order, empty for an empty one, twice the same.

    Links are spans of characters of the text and its translation.
    """
    texts = texts or [*(pair.first for pair in _bitext(4)), ""]
    translator.check(source, target)
    results = []
    for name in ("first", "second"):
        setting = TranslateSetting(
            source=source, target=target, model=model, folder=folder / name, precision="float32"
        )
        (folder / name).mkdir(parents=True, exist_ok=True)
        results.append(list(translator.translate(texts, setting)))
    _expect(len(results[0]), len(texts), "translations")
    for text, translation in zip(texts, results[0], strict=True):
        if "\n" in translation.text or (not text and translation.text):
            raise LawBroken(
                f"{translator}: {text!r} becomes {translation.text!r}. Expected: one line; none of none."
            )
        for link in translation.links or ():
            _check_spans(translator, link, (text, translation.text))
    _expect(results[1], results[0], "translations made twice")


def _check_spans(translator: Translator, link: object, texts: tuple[str, str]) -> None:
    """Check that a link is a span (start, end) of the text and one of its translation."""
    match link:
        case ((int(start), int(end)), (int(other_start), int(other_end))) if 0 <= start < end <= len(
            texts[0]
        ) and 0 <= other_start < other_end <= len(texts[1]):
            return
    raise LawBroken(
        f"{translator}: a link is {link!r:.80}. Expected: ((start, end), (start, end)), in characters of "
        f"{texts[0]!r:.80} and of {texts[1]!r:.80}."
    )


def check_claim(claim: Claim, folder: Path) -> None:
    """Check a claim on a folder of runs: reordered rows change nothing, and an empty table is allowed."""
    original = read_measurements(folder)
    runs_reversed = [
        replace(planned_run, record=replace(planned_run.record, rows=planned_run.record.rows[::-1]))
        for planned_run in original.runs[::-1]
    ]
    reverse = Measurements(
        runs=runs_reversed, labels=original.labels, methods=original.methods, against=original.against
    )
    claim.test(Measurements(runs=[]))
    checks, checks_of_reverse = (
        sorted(
            (check.about, check.p_value, check.inside) for check in claim.test(measurements) if check.values
        )
        for measurements in (original, reverse)
    )
    _expect(checks_of_reverse, checks, f"checks of {claim.id} on rows in another order")


def check_engine(name: str, folder: Path, *, study: Mapping[str, Any] = STUDY, **options: Any) -> None:
    """Check an engine by its name: it makes all runs, with the same records as one process."""
    serial = _files_of(_run(study, folder / "serial"))
    _expect_equal(
        serial, _files_of(_run(study, folder / "engine", engine=name, **options)), f"serial and {name}"
    )


def _run(
    study: Mapping[str, Any],
    target: Path,
    *,
    engine: str = "serial",
    on_progress: OnProgress = no_progress,
    **options: Any,
) -> Path:
    outcome = run(study, out=target, engine=engine, on_progress=on_progress, report=False, **options).outcome
    if outcome.failed:
        raise LawBroken(f"runs failed: {outcome.failed}")
    return target


def _train(study: Mapping[str, Any], methods: Sequence[Method], folder: Path) -> dict[str, str]:
    """Train the models of a study and of further methods, and return digests of their files."""
    return _files_of(_run(_with_methods(study, methods), folder))


def _with_methods(study: Mapping[str, Any], methods: Sequence[Method]) -> Mapping[str, Any]:
    grid = {**study["grid"], "method": [*study["grid"]["method"], *methods]}
    return {**study, "grid": grid}


def _is_interrupted(study: Mapping[str, Any], method: Method, folder: Path) -> bool:
    """Begin a training and interrupt it after its first update."""

    def interrupt(progress: Progress) -> None:
        if progress.rows or "fine-tuning" in progress.what:
            raise Interrupted

    try:
        _run(_with_methods(study, [method]), folder, on_progress=interrupt)
    except Interrupted:
        return True
    return False


def _files_of(folder: Path) -> dict[str, str]:
    """Return digests of records and models by their path."""
    paths = [*folder.glob(f"*/{RECORD}"), *folder.glob("*/model/**/*")]
    return {
        path.relative_to(folder).as_posix(): _digest(path.read_bytes())
        for path in sorted(paths)
        if path.is_file()
    }


def _weights(files: Mapping[str, str]) -> set[str]:
    """Return the digests of all files of weights."""
    return {digest for name, digest in files.items() if name.endswith(".safetensors")}


def _digests(model: Model) -> dict[str, str]:
    """Return the digest of each parameter of a model."""
    return {name: _digest(weight.detach().numpy().tobytes()) for name, weight in model.named_parameters()}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _bitext(count: int = 20) -> list[Translation]:
    """Return pairs of sentences in two built-in languages."""
    return load_corpus("bitext", "qaa-qab", examples=count)


def _expect(actual: object, expected: object, subject: str) -> None:
    if actual != expected:
        raise LawBroken(f"{subject}: expected {_short(expected)}, found {_short(actual)}")


def _expect_equal(expected: Mapping[str, str], actual: Mapping[str, str], subject: str) -> None:
    differing = sorted(name for name in {*expected, *actual} if expected.get(name) != actual.get(name))
    if differing:
        raise LawBroken(f"{subject}: {len(differing)} files or weights differ: {', '.join(differing[:5])}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


__all__ = [
    "STUDY",
    "LawBroken",
    "check_aligner",
    "check_claim",
    "check_corpus",
    "check_diagnostic",
    "check_engine",
    "check_method",
    "check_task",
    "check_translator",
]
