"""Level and power of the claims: `python benchmarks/court.py [DRAWS [CLAIM…]]`.

Level: how often a claim is supported, or contradicted, where its effect is absent, and contradicted where it
is present. Power: how often it is supported where it is present. With two, three and six seeds. A claim is
named by its letter (2j) or by its paper (2).
"""

import sys
from dataclasses import astuple
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "reports")]

from court import TRIALS, tried  # noqa: E402
from court_systems import SYSTEM_TRIALS  # noqa: E402

SEEDS = (2, 3, 6)


def main() -> None:
    """Print the table."""
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    named = tuple(sys.argv[2:]) or ("",)
    print("| claim | seeds | supported, absent | contradicted, absent | contradicted, present | power |")
    print("| --- | --- | --- | --- | --- | --- |")
    for trial in (*TRIALS, *SYSTEM_TRIALS):
        for seeds in SEEDS if trial.claim.startswith(named) else ():
            shares = astuple(tried(trial, seeds, draws))
            print(
                f"| {trial.claim} | {seeds} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
