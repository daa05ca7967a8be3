"""The table of entropies in reports, and the command that prints them."""

from collections.abc import Sequence
from dataclasses import dataclass

import isogloss
from isogloss.plugins import Figure, Measurements, Table, plain_table


@dataclass(frozen=True)
class EntropyTable:
    """The entropies of a study."""

    frame: str = "entropy"

    def show(self, measurements: Measurements) -> Sequence[Table | Figure]:
        """Return the table of mean entropies by method and language."""
        frame = measurements.frame(self.frame)
        means = frame.groupby(["method", "language"], as_index=False)["entropy"].mean()
        return [plain_table("entropy", "Entropy of predictions, in nats", means)]


TABLE = EntropyTable()


def print_entropies(words: list[str]) -> int:
    """Print the entropies of a folder of runs: isogloss entropy RUNS."""
    if len(words) != 1:
        print("isogloss entropy: expected one folder of runs.")
        return 2
    frame = isogloss.read(words[0]).frame("entropy")
    print(frame.groupby(["method", "language"])["entropy"].mean().to_string())
    return 0
