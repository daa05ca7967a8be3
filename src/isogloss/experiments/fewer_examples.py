"""Where a run asks for more examples than there are: it reads all there are, and its record says so."""

from collections.abc import Iterable, Iterator
from itertools import islice

from isogloss.core.runs import Run
from isogloss.data.built_in import built_in_size
from isogloss.data.layouts import is_translation
from isogloss.data.sources import Sources
from isogloss.experiments.reading import Reading, splits_read

KINDS = {"train": "training", "dev": "development", "test": "test"}


def fewer_than_asked(run: Run, sources: Sources) -> Iterator[str]:
    """Say for each split a run reads whether it has fewer examples than the run asks for."""
    for split in splits_read(run):
        if _is_counted(split, sources):
            yield from _told(split, _size(split, sources))


def fewer_in_plan(runs: Iterable[Run]) -> list[str]:
    """Say the same once for all runs of a plan, where it is known without reading: of built-in corpora."""
    splits = dict.fromkeys(split for run in runs for split in splits_read(run))
    known = {split: built_in_size(split.corpus, split.language, split.split) for split in splits}
    told = [_told(split, size) for split, size in known.items() if size is not None and split.examples]
    return list(dict.fromkeys(text for some in told for text in some))


def _is_counted(split: Reading, sources: Sources) -> bool:
    """Leave out what is not limited, and translations: what these lost is told where they were made."""
    labelled = "bitext" not in sources.corpus(split.corpus).tasks
    return bool(split.examples) and not (labelled and is_translation(split.language))


def _size(split: Reading, sources: Sources) -> int:
    """Count a split's examples, as far as they are asked for."""
    known = built_in_size(split.corpus, split.language, split.split)
    if known is not None:
        return known
    read = sources.stream(split.corpus, split.language, split.split, treebanks=split.treebanks)
    return sum(1 for _ in islice(read, split.examples))


def _told(split: Reading, size: int) -> Iterator[str]:
    if size < split.examples:
        yield (
            f"asked for {split.examples:,} {KINDS[split.split]} examples of {split.language} in "
            f"{split.corpus}: there are {size:,}; all were read."
        )
