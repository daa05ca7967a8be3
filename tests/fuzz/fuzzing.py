"""Mutate files and check the outcome, up to a million times: `make fuzz N=1000000`.

    python tests/fuzz/fuzzing.py --mutations 1000000          # over all doors, by their speed, on all cores
    python tests/fuzz/fuzzing.py --door "corpus ud" --number 17      # one again

A reader returns, or raises one of our errors in one line that names the file; within a second of processor
time, and without writing anything elsewhere. All else is a fault.
"""

import argparse
import contextlib
import io
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from doors import Door, doors  # noqa: E402
from mutations import mutate_text  # noqa: E402

from isogloss.core.errors import InputError  # noqa: E402

SECONDS = 1.0
"""Processor time of one file."""

LONGEST = 1_600
"""Characters of a message."""

MEMORY = 6 << 30
"""Bytes of address space of each process of `make fuzz`."""


class Hangs(BaseException):
    """More than a second of processor time."""


@dataclass
class Found:
    """Outcome of the mutations of a door."""

    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str]] = field(default_factory=list)
    peak: int = 0


def try_door(door: Door, index: int, folder: Path, seconds: float = SECONDS) -> tuple[str, str]:
    """Mutate a file of a door and read it. Return right, refused, foreign, hang or badly said, and why."""
    read = _put_variant(door, index, folder)
    files = door.variants[index % len(door.variants)][0]
    paths_before = set(_list_files(folder))
    try:
        with (
            _limit_time(seconds),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            read(folder)
    except InputError as error:
        return _judge_message(str(error), folder, files)
    except Hangs:
        return "hang", f"more than {seconds:g} s of processor time"
    except Exception as error:
        last_value = traceback.extract_tb(error.__traceback__)
        ours = [
            f"{Path(item.filename).name}:{item.lineno}" for item in last_value if "isogloss" in item.filename
        ]
        return "foreign", f"{type(error).__name__} at {' '.join(ours[-2:])}: {str(error)[:120]}"
    new_names = [
        name
        for name in set(_list_files(folder)) - paths_before
        if not (door.writes and name.startswith(door.writes))
    ]
    return ("wrote", ", ".join(new_names)) if new_names else ("right", "")


def _put_variant(door: Door, index: int, folder: Path, *, mutate: bool = True) -> Callable[[Path], object]:
    """Write the files of a variant of a door, one of them mutated. Return what reads them."""
    files, target, read = door.variants[index % len(door.variants)]
    for name, body in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        is_mutated = mutate and name == target
        path.write_bytes(
            mutate_text(body, f"{door.name} {index}", binary=door.binary) if is_mutated else body
        )
    return read


def _judge_message(message: str, folder: Path, names: Iterable[str]) -> tuple[str, str]:
    if "\n" in message or len(message) > LONGEST:
        return (
            "badly said",
            f"{len(message)} characters, {message.count(chr(10))} line ends: {message[:200]!r}",
        )
    is_named = any(name in message for name in (str(folder), *names))
    return ("refused", "") if is_named else ("badly said", f"no file: {message[:200]!r}")


def _list_files(folder: Path) -> Iterator[str]:
    return (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@contextlib.contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    def end(*_: object) -> None:
        raise Hangs

    signal_before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal_before)


def fuzz(name: str, numbers: range, folder: Path, seconds: float = SECONDS) -> Found:
    """Try mutations of a door, each in a folder without files."""
    result = Found()
    door = doors()[name]
    warnings.simplefilter("ignore")
    with contextlib.suppress(InputError):  # What is imported takes no part of a file's second.
        _put_variant(door, 0, folder / "here", mutate=False)(folder / "here")
    shutil.rmtree(folder / "here")
    for index in numbers:
        place = folder / "here"
        outcome, why = try_door(door, index, place, seconds)
        result.outcomes[outcome] += 1
        if why:
            result.faults.append((index, f"{outcome}: {why}"))
        for path in (
            value for value in place.rglob("*") if Path.is_file(value)
        ):  # The next one's folders are these.
            path.unlink()
    result.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return result


def _share(job: tuple[str, range]) -> tuple[str, Found]:
    with tempfile.TemporaryDirectory() as folder:
        return job[0], fuzz(*job, Path(folder))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--door", default="")
    parser.add_argument("--number", type=int, default=None)
    parser.add_argument("--begin", type=int, default=1_000_000, help="the first number: CI has those from 0")
    options = parser.parse_args()
    if options.number is not None:
        _again(options.door, options.number)
        return
    chosen_names = [name for name in doors() if options.door in name]
    whole_total = sum(1 / doors()[name].cost for name in chosen_names)
    jobs = []
    for name in chosen_names:
        count = max(1, round(options.mutations / doors()[name].cost / whole_total))
        step = max(1, min(count, 20_000, round(200_000 / doors()[name].cost)))
        jobs += [
            (name, range(options.begin + index, options.begin + min(index + step, count)))
            for index in range(0, count, step)
        ]
    result = {name: Found() for name in chosen_names}
    with multiprocessing.Pool(
        os.cpu_count(), lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    ) as pool:
        for name, part in pool.imap_unordered(_share, jobs):
            result[name].outcomes += part.outcomes
            result[name].faults += part.faults
            result[name].peak = max(result[name].peak, part.peak)
    sys.exit(_report(result))


def _again(name: str, index: int) -> None:
    folder = Path(tempfile.mkdtemp())
    print(try_door(doors()[name], index, folder), folder)  # noqa: T201


def _report(result: dict[str, Found]) -> int:
    columns = ("right", "refused", "foreign", "hang", "badly said", "wrote")
    print(f"| door | mutations | {' | '.join(columns)} | peak MiB |\n|---|{'---|' * (len(columns) + 2)}")  # noqa: T201
    for name, item in result.items():
        cells = [item.outcomes.total(), *(item.outcomes[column] for column in columns), item.peak]
        print(f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} |")  # noqa: T201
    total = sum((first_item.outcomes for first_item in result.values()), Counter[str]())
    print(f"| all | {total.total():,} | {' | '.join(f'{total[column]:,}' for column in columns)} | |")  # noqa: T201
    kinds: dict[str, list[str]] = {}
    for name, item in result.items():
        for fault, why in item.faults:
            kinds.setdefault(why.partition(": ")[2].partition(": ")[0] or why, []).append(
                f"{name!r} {fault}: {why}"
            )
    for examples in kinds.values():
        print(f"\n{len(examples)} of one kind, such as {examples[0]}")  # noqa: T201
    return int(bool(kinds))


if __name__ == "__main__":
    main()
