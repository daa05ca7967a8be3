"""Level and power of the claims: `python benchmarks/court.py [DRAWS]`.

Level: how often a claim is supported where its effect is absent, and contradicted where it is present. Power:
how often it is supported where it is present. With two, three and six seeds.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reports")]

from court import TRIALS, tried  # noqa: E402


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| claim | seeds | supported where absent | contradicted where present | power |")
    print("| --- | --- | --- | --- | --- |")
    for trial in TRIALS:
        for seeds in (2, 3, 6):
            tally = tried(trial, seeds, draws)
            shares = (tally.supported_absent, tally.contradicted_present, tally.power)
            print(
                f"| {trial.claim} | {seeds} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
