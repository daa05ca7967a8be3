"""Progress of an unfinished run, by the names of the files that the next process resumes from."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_PIECE = re.compile(r"chunk-.+\.jsonl")


def find_resume_point(names: Iterable[str]) -> str:
    """Return the progress of a run, such as "step 60" or "12 pieces". Empty without a checkpoint.

    ``names`` are the files below its working folder, with / between their parts. A run with several trainings
    has a folder for each. The text changes with every new checkpoint.
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
