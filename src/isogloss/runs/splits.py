"""Splits that runs read, from files or from runs that translated them, and names of parts in tables."""

from collections.abc import Iterable, Sequence
from dataclasses import fields

from isogloss.core.run_parts import Named, values_of
from isogloss.data.corpus import Split
from isogloss.data.examples import Example
from isogloss.data.sources import Treebanks
from isogloss.runs.run import RunContext, SplitRead, TranslatedSplit


def describe_part(part: Named, *notes: str) -> str:
    """Return the name of a method or translator with notes and its changed fields."""
    silent = {field.name for field in fields(part) if field.metadata.get("watches")}
    default = values_of(type(part)())
    changes = [
        f"{name}={'+'.join(str(part) for part in value) if isinstance(value, tuple) else value}"
        for name, value in values_of(part).items()
        if value != default[name] and name not in silent
    ]
    details = ", ".join((*(note for note in notes if note), *changes))
    return f"{part.name} ({details})" if details else part.name


def translator_label(translations: Sequence[TranslatedSplit]) -> str:
    """Return the translator's name with its models. Models of several directions are joined by +."""
    models = dict.fromkeys(run.model_label for run in translations if run.model_label)
    return describe_part(translations[0].translator, "+".join(models))


def split_read(corpus: str, language: str, split: Split, examples: int, treebanks: Treebanks) -> SplitRead:
    """Return a split with only the treebank of its language."""
    banks = tuple(pair for pair in treebanks if pair[0] == language)
    return SplitRead(corpus=corpus, language=language, split=split, treebanks=banks, examples=examples)


def from_files(
    splits: Iterable[SplitRead], translations: Sequence[TranslatedSplit] | None
) -> tuple[SplitRead, ...]:
    """Return the splits that a run reads from files, without those it translates."""
    translated_splits = {(run.languages, run.split) for run in translations or ()}
    return tuple(split for split in splits if (split.language, split.split) not in translated_splits)


def read_or_translated(
    context: RunContext, translations: Sequence[TranslatedSplit] | None, split: SplitRead
) -> list[Example]:
    """Read the examples of a split from the run that translated it, or from files."""
    for run in translations or ():
        if (run.languages, run.split) == (split.language, split.split):
            return run.read_examples(context)
    return context.sources.examples(
        split.corpus, split.language, split.split, treebanks=split.treebanks, examples=split.examples
    )
