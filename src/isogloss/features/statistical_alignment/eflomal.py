"""eflomal (Östling & Tiedemann 2016): a Bayesian hidden Markov model with fertility, by Gibbs sampling.

It is under the GNU GPL, so it is only ever run as a program, which the user installs; nothing of it is
imported. The program draws its random numbers from the system: two runs differ in a few links, whatever the
seed. It reads sentences as numbers.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError, RunError
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Rate
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import Aligned, Symmetrization, pair_words, read_pharaoh
from isogloss.features.statistical_alignment.symmetrizing import symmetrize

PROGRAM = "eflomal"

ITERATIONS_FOR_ONE_PAIR = 5000
"""Sampling iterations for one pair, divided by √n for n pairs, as in the program's own front end."""

MAX_SENTENCE_WORDS = 1024
"""Sentences of this many words are skipped, as in the program's front end."""


@dataclass(frozen=True, kw_only=True)
class Eflomal:
    """Align with the program eflomal: more accurate than fast-align, and slower."""

    name: ClassVar[str] = "eflomal"
    needs_encoder: ClassVar[bool] = False
    version: ClassVar[int] = 2

    symmetrization: Symmetrization = "intersection"
    """Symmetrization of both directions: intersection (one-to-one), union, grow-diag, grow-diag-final-and, or
    only forward or backward."""

    model: Literal[1, 2, 3] = 3
    """Model 1 uses only words (IBM 1), 2 also order (HMM), and 3 also fertility."""

    samplers: Positive = 3
    """Samplers whose links are averaged."""

    length: Rate = 1.0
    """Sampling iterations, relative to the program's usual number."""

    none: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.2
    """Prior probability that a word has no counterpart."""

    lowercase: bool = True
    """Whether words are lowercased."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Run the program, and make one of the links of both directions."""
        return [
            Aligned(links=symmetrize(forward.links, backward.links, self.symmetrization))
            for forward, backward in zip(*self.directions(setting), strict=True)
        ]

    def directions(self, setting: AlignSetting) -> tuple[list[Aligned], list[Aligned]]:
        """Run the program and return the links of both directions."""
        program = _program()
        convert_case = str.lower if self.lowercase else str
        words = [pair_words(pair) for pair in setting.pairs]
        setting.on_progress(Progress(what="eflomal", done=0, total=1, remark=f"{len(words)} pairs"))
        with TemporaryDirectory(prefix="eflomal-") as folder:
            sides, links = ([Path(folder, name) for name in pair] for pair in (("s", "t"), ("f", "r")))
            for path, side in zip(sides, (0, 1), strict=True):
                write_sentences(path, [[convert_case(word) for word in pair[side]] for pair in words])
            files = [text for path in (*sides, *links) for text in (f"-{path.name}", str(path))]
            _run([program, *files, *self._options(len(words))])
            forward, backward = (list(read_pharaoh(disk_file(path), setting.pairs)) for path in links)
        setting.on_progress(Progress(what="eflomal", done=1, total=1))
        return forward, backward

    def _options(self, pairs: int) -> list[str]:
        """Return the options of model and iterations. The simpler models run first, a quarter as long."""
        rounds = max(2, round(self.length * ITERATIONS_FOR_ONE_PAIR / sqrt(max(pairs, 1))))
        quarter = max(1, rounds // 4)
        rounds_of_models = {
            1: (rounds, 0, 0),
            2: (max(2, quarter), rounds, 0),
            3: (max(2, quarter), quarter, rounds),
        }
        stages = zip("123", rounds_of_models[self.model], strict=True)
        options = ["-m", str(self.model), "-n", str(self.samplers), "-N", str(self.none), "-q"]
        return [*options, *(text for stage, count in stages if count for text in (f"-{stage}", str(count)))]


def _run(command: list[str]) -> None:
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise RunError(
            f"{command[0]}: cannot be run ({error.strerror or error}). Install eflomal again."
        ) from error
    if process.returncode:
        output = " ".join(process.stderr.split())[-300:] or "no output"
        raise RunError(
            f"{command[0]}: exit code {process.returncode} ({output}). Align fewer pairs, or use fast-align."
        )


def _program() -> str:
    spec = find_spec(PROGRAM)
    paths = [Path(folder, "bin", PROGRAM) for folder in (spec and spec.submodule_search_locations) or ()]
    program = shutil.which(PROGRAM) or next((str(path) for path in paths if path.is_file()), None)
    if program is None:
        raise ConfigError(
            "aligner eflomal: no program eflomal is on the PATH. pip install eflomal (it is under the GPL, "
            "and needs a C compiler), or choose the aligner fast-align or encoder."
        )
    return program


def write_sentences(path: Path, sentences: Sequence[Sequence[str]]) -> None:
    """Write sentences as ids of words. Sentences that are too long become empty."""
    numbers: dict[str, int] = {}
    rows = [
        [numbers.setdefault(word, len(numbers)) for word in words] if len(words) < MAX_SENTENCE_WORDS else []
        for words in sentences
    ]
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(f"{len(rows)} {len(numbers)}\n")
        file.writelines(" ".join(str(cell) for cell in (len(row), *row)) + "\n" for row in rows)
