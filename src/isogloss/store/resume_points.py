"""How far an unfinished run got, by the names of the files that the next process resumes from."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_PIECE = re.compile(r"chunk-.+\.jsonl")


def find_resume_point(names: Iterable[str]) -> str:
    """Return how far a run got, as "step 60" or "12 pieces"; empty without a checkpoint.

    ``names`` are those of files below its folder for work, with / between their parts. A run with several
    trainings has a folder for each. Whatever changes when a checkpoint is written changes the text.
    """
    steps: dict[str, int] = {}
    pieces = 0
    for name in names:
        for part in (path := PurePosixPath(name), *path.parents):
            if match := _CHECKPOINT.fullmatch(part.name):
                training = "" if str(part.parent) == "." else f"{part.parent} "
                steps[training] = max(int(match[1]), steps.get(training, 0))
            pieces += bool(_PIECE.fullmatch(part.name))
    texts = [f"{training}step {step}" for training, step in sorted(steps.items())]
    return ", ".join([*texts, *([f"{pieces} pieces"] if pieces else [])])
