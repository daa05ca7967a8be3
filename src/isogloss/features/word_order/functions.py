"""Questions of SQuAD with a different order of subject, verb and object (SQuAD-SOV)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, cast

from isogloss.core.arguments import checks_arguments
from isogloss.core.atomic_files import write_text
from isogloss.core.errors import add_location
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.examples import Question
from isogloss.data.files import disk_file
from isogloss.data.formats.conllu import read_conllu
from isogloss.data.sources import Sources
from isogloss.features.word_order.orders import reorder_passages


@checks_arguments
def reorder_questions(
    questions: str | Path,
    trees: str | Path,
    to: str | Path,
    *,
    order: Literal["SVO", "SOV", "VSO", "VOS", "OVS", "OSV"] = "SOV",
) -> list[str]:
    """Write the questions of a file with subject, verb and object of each clause reordered.

    ``questions`` is a file in SQuAD's JSON, and so is ``to``, which a description makes a corpus. ``trees``
    is a CoNLL-U file of parsed sentences: the sentences of each passage and then of its questions, in the
    order of the file, with the words as they are written. Returns the ids of the questions that are skipped,
    because the words of their answers are no longer together. ``order`` is the order of subject (S), verb (V)
    and object (O).

    DataError if trees and texts differ, StorageError if the file cannot be written.

    Device: none. Cost: a pass over both files, which are in memory.

    >>> isogloss.reorder_questions("train.json", "train.conllu", "sov/train.json")  # doctest: +SKIP
    """
    squad = cast(LabelledCorpus, Sources().corpus("squad"))
    with add_location(str(trees)):
        examples = squad.examples(disk_file(Path(questions)), "en", "train")
        result = reorder_passages(
            cast(Iterator[Question], examples), read_conllu(disk_file(Path(trees))), order
        )
    target = Path(to)
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = squad.write(result.questions, "en")
    write_text(target.parent, target.name, "\n".join(lines) + "\n")
    return result.left_out
