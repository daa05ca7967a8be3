"""Compare the training of small models in parallel on one GPU: seconds, and equality of the records.

    python benchmarks/devices.py            # some minutes
    python benchmarks/devices.py --jobs 4
    python benchmarks/devices.py --quick    # does it work? Its numbers mean nothing.

The same recipe on the built-in languages is run sequentially, then with a number of processes on the same
GPU, then on all GPUs if the machine has several. Seconds include the start of processes. The exit code is 1
if a record differs, or if a run failed or was repeated for lack of memory. Without a GPU a message is
printed.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import torch

import isogloss
from isogloss.engine.devices import CONTEXT, describe_device, gpus

SIZES = {"epochs": 5, "examples": 2000, "seeds": 4}
QUICK = {"epochs": 1, "examples": 32, "seeds": 2}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes on one GPU")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    options = parser.parse_args()
    devices = gpus()
    if not devices:
        print("There is no GPU here that torch can use: nothing to compare.")
        return
    print("\n".join(f"{device}: {describe_device(device)}" for device in devices))
    ways = {"one": ("0", 1), f"{options.jobs} on one": ("0", options.jobs)}
    if len(devices) > 1:
        ways[f"one on each of {len(devices)}"] = ("all", len(devices))
    with tempfile.TemporaryDirectory() as folder:
        sizes = QUICK if options.quick else SIZES
        all_well = [compare_way(Path(folder), sizes, way, *settings) for way, settings in ways.items()]
    print(f"A process takes {beside_tensors() / 1e6:.0f} MB beside tensors; {CONTEXT / 1e6:.0f} are assumed.")
    sys.exit(not all(all_well))


def compare_way(folder: Path, sizes: dict[str, int], way: str, devices: str, jobs: int) -> bool:
    """Run the recipe in one way, print its time, and return whether all records equal a single process's."""
    start = perf_counter()
    outcome = isogloss.run(
        recipe(**sizes), out=folder / way, devices=devices, jobs=jobs, report=False
    ).outcome
    seconds = perf_counter() - start
    records = {path.parent.name: path.read_bytes() for path in sorted((folder / "one").glob("*/record.json"))}
    differ = [key for key, record in records.items() if read(folder / way / key / "record.json") != record]
    print(
        f"{way}: {seconds:.1f} s for {len(outcome.made)} runs, {len(differ)} of {len(records)} records "
        f"differ, {len(outcome.died)} made again, {len(outcome.failed)} failed."
    )
    return not (differ or outcome.died or outcome.failed)


def recipe(*, epochs: int, examples: int, seeds: int) -> dict[str, object]:
    """Return a recipe of independent trainings of the shipped encoder."""
    return {
        "title": "Side by side",
        "encoder": "shipped",
        "grid": {
            "corpus": "wikiann",
            "source": "qaa",
            "targets": ["qab"],
            "seeds": list(range(seeds)),
            "examples": examples,
            "optimization": {"epochs": epochs, "learning_rate": 5e-4, "batch_size": 32},
            "method": [{"name": "source-only"}],
        },
        "measure": [{"name": "scores"}],
    }


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def beside_tensors() -> int:
    """Return the memory of this process on an idle GPU beyond torch's allocator."""
    torch.cuda.synchronize()
    free_memory, total = torch.cuda.mem_get_info()
    return total - free_memory - torch.cuda.memory_reserved()


if __name__ == "__main__":
    main()
