"""Check the claims about GPUs of docs/results/gpu, docs/machines.md and docs/performance.md on one card.

    python benchmarks/gpu_check.py                                  # under ten minutes
    python benchmarks/gpu_check.py --budget 300 --sections peaks,usual,captured
    python benchmarks/gpu_check.py --table gpu_check.json           # print the table of an earlier call
    python benchmarks/gpu_check.py --quick                          # does it work? Also without a GPU.

Each section is a separate process. It is forked from this one, which has imported everything and never uses
the GPU. So a section that fails, takes too long or breaks CUDA is a row of the table, and the next section
starts with an empty card. Rows are printed at once, and the JSON file is rewritten after each section. The
exit code is 1 if a claim does not hold.
"""

import argparse
import copy
import json
import multiprocessing
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # Finds GPUs without using them in this process.

import torch
import transformers
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

import isogloss
from isogloss.core.run_parts import Architecture, Updates
from isogloss.encoders.computation import fastest_attention
from isogloss.features.pretraining.starts import config_of
from isogloss.tasks import TASKS
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.tagging import UPOS
from isogloss.training.captured import Captured
from isogloss.training.checkpoints import CHECKPOINT_SHARE, Checkpoints, State
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.fit import Callbacks, fit, on_host
from isogloss.training.memory import ran_out, restart_measurement
from isogloss.training.optimizer import adamw
from isogloss.training.precision import device, faster, matrix_speeds
from isogloss.using.predictor import GROUP_SIZE
from devices import QUICK as SMALL_RECIPE
from devices import recipe
from material import SHAPES, make_material
from paper_encoders import (
    ENCODERS,
    HEADER,
    LENGTH,
    QUICK,
    SENTENCE,
    Measurement,
    Size,
    line,
    measure,
    wait_for_gpu,
)
from training_memory import new_model, draw_tagged

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "gpu" / "README.md"
"""Page with the table of ``paper_encoders.py`` that is compared with."""

FULL = Size()
SMALLEST = replace(QUICK, warm=2)  # The first update of a shape is computed as usual, the second is captured.
PRETRAINED = "8 layers, masked LM"
TAGGING = ("XLM-R base", "XLM-R large", "mBERT")
RECIPES = ("methods", "encoders", "tasks", "compositions")
"""Parts of tests/test_on_gpu.py. The first is NLI: translate-train, X-Mixup, consistency, averages."""

Facts = dict[str, Any]
"""Numbers of earlier sections that later ones use, by name."""


@dataclass(frozen=True)
class Row:
    """A claim, and what was measured."""

    section: str
    claim: str
    stated: str
    measured: str
    holds: bool | None = None
    """Whether the claim holds. None for a measurement without a claim, or one that was not possible."""


@dataclass
class Checks:
    """Options of one section, and the rows that it writes to a file."""

    section: str
    log: Path
    """File with a JSON object per line, each a row or a fact."""
    deadline: float
    """When the section ends at the latest, by ``monotonic``."""
    options: argparse.Namespace
    facts: Facts = field(default_factory=dict)

    @property
    def is_quick(self) -> bool:
        return bool(self.options.quick)

    @property
    def seconds_left(self) -> float:
        return self.deadline - monotonic()

    @property
    def size(self) -> Size:
        """Numbers of rows and updates of a training."""
        return SMALLEST if self.is_quick else FULL

    def shape(self, name: str) -> Architecture:
        """Return the shape of a paper's encoder, or a tiny one."""
        if self.is_quick:
            return SHAPES["tiny"]
        return SHAPES["paper"] if name == PRETRAINED else ENCODERS[name]

    def add(self, claim: str, stated: str, measured: str, holds: bool | None = None) -> None:
        """Write and print a row."""
        row = Row(self.section, claim, stated, measured, holds)
        self._write({"row": asdict(row)})
        print(f"  {claim}: {measured} (stated: {stated or 'nothing'}) {verdict(row)}", flush=True)

    def add_fact(self, name: str, value: object) -> None:
        """Write a number that later sections use."""
        self.facts[name] = value
        self._write({"fact": [name, value]})

    def _write(self, value: object) -> None:
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")


def main() -> None:
    options = parse_options()
    if options.table:
        print_table(json.loads(options.table.read_text(encoding="utf-8")))
        return
    start = monotonic()
    names = options.sections.split(",") if options.sections else list(SECTIONS)
    if unknown := set(names) - set(SECTIONS):
        sys.exit(f"--sections: {', '.join(sorted(unknown))}; choose of {','.join(SECTIONS)}")
    import_models()
    way = start_method()
    rows: list[Row] = []
    facts: Facts = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            limit = min(SECTIONS[name].seconds, options.budget - (monotonic() - start))
            print(f"[{monotonic() - start:4.0f} s] {name}, at most {limit:.0f} s", flush=True)
            log = Path(folder) / f"{name}.jsonl"
            log.touch()
            ending = run_section(name, log, limit, options, facts, way)
            rows += read_log(log, facts)
            if ending:
                rows.append(Row(name, f"section {name}", "runs to its end", ending, False))
                print(f"  {name}: {ending}", flush=True)
            write_json(options.out, rows, facts, monotonic() - start)
    print_table(json.loads(options.out.read_text(encoding="utf-8")))
    sys.exit(any(row.holds is False for row in rows))


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("gpu_check.json"))
    parser.add_argument("--budget", type=float, default=560, help="seconds, without the first imports")
    parser.add_argument("--sections", default="", help=f"of {','.join(SECTIONS)}")
    parser.add_argument("--training-seconds", type=float, default=40, help="of section checkpoint-share")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    parser.add_argument("--table", type=Path, help="print the table of this file, and measure nothing")
    return parser.parse_args()


# The processes of sections.


def import_models() -> None:
    """Import what models need, so that sections do not: transformers imports it with the first model."""
    for shape in (SHAPES["tiny"], ENCODERS["XLM-R base"]):
        for kind in (transformers.AutoModelForMaskedLM, transformers.AutoModelForTokenClassification):
            with torch.device("meta"):
                kind.from_config(config_of(shape), attn_implementation="sdpa")


def start_method() -> str:
    """Return fork if a forked process can use the GPU, else spawn, which imports everything again."""
    forks = "fork" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if forks else "spawn")
    process: BaseProcess = context.Process(target=use_gpu)
    process.start()
    process.join(120)
    if process.is_alive():
        process.kill()
    return "fork" if forks and process.exitcode == 0 else "spawn"


def use_gpu() -> None:
    """Allocate memory on the GPU, if there is one."""
    limit_threads()
    torch.zeros(1, device=device())


def limit_threads() -> None:
    """Compute in one thread without a GPU: a forked process has none of the threads of torch."""
    if device().type == "cpu":
        torch.set_num_threads(1)


def run_section(
    name: str, log: Path, limit: float, options: argparse.Namespace, facts: Facts, way: str
) -> str:
    """Run a section in its own process, and return why it did not run to its end, or an empty string."""
    if limit < SECTIONS[name].at_least:
        return f"left out: {limit:.0f} s are left of the budget"
    context: Any = multiprocessing.get_context(way)
    process: BaseProcess = context.Process(target=enter_section, args=(name, log, limit, options, facts))
    process.start()
    try:
        process.join(limit)
    finally:
        is_late = process.is_alive()
        end_process(process)
    if is_late:
        return f"stopped after {limit:.0f} s"
    return "" if process.exitcode == 0 else f"ended with exit code {process.exitcode}"


def end_process(process: BaseProcess) -> None:
    """End a section's process and all processes that it started."""
    if process.is_alive():
        process.kill()
    process.join(10)
    with suppress(ProcessLookupError, PermissionError, TypeError):
        os.killpg(process.pid, signal.SIGKILL)


def enter_section(name: str, log: Path, limit: float, options: argparse.Namespace, facts: Facts) -> None:
    """Run a section in this process. An error is a row."""
    os.setpgid(0, 0)  # A group of its own, with the programs that it starts.
    checks = Checks(name, log, monotonic() + limit, options, {**facts})
    try:
        limit_threads()
        checks.add_fact("device", torch.cuda.get_device_name() if has_gpu() else "no GPU")
        restart_measurement()
        SECTIONS[name].check(checks)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        checks.add(f"section {name}", "runs to its end", text[:300], False)
    sys.stdout.flush()


def has_gpu() -> bool:
    return torch.cuda.is_available()


def read_log(log: Path, facts: Facts) -> list[Row]:
    """Return the rows that a section wrote, and add its facts."""
    rows = []
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            value = json.loads(text)
        except ValueError:  # The process was killed while it wrote the last line.
            continue
        if "row" in value:
            rows.append(Row(**value["row"]))
        else:
            name, fact = value["fact"]
            facts[name] = fact
    return rows


def write_json(path: Path, rows: Sequence[Row], facts: Facts, seconds: float) -> None:
    body = {
        "device": facts.get("device", "unknown"),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "seconds": round(seconds),
        "rows": [asdict(row) for row in rows],
        "facts": facts,
    }
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def verdict(row: Row) -> str:
    if row.holds is None:
        return ""
    return "holds" if row.holds else "**does not hold**"


def print_table(results: dict[str, Any]) -> None:
    """Print all rows, and the measurements of encoders, as Markdown."""
    print(
        f"\n{results['device']}, Python {results['python']}, torch {results['torch']}, "
        f"transformers {results['transformers']}, {results['seconds']} s\n"
    )
    print("| section | claim | stated | measured | |")
    print("|---|---|---|---|---|")
    for values in results["rows"]:
        row = Row(**values)
        cells = [row.section, row.claim, row.stated, row.measured, verdict(row)]
        print(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    lines = results["facts"].get("lines", [])
    if lines:
        print("\n".join(["", HEADER, *lines]))
    sys.stdout.flush()


# Peaks and precision.


def check_peaks(checks: Checks) -> None:
    """Measure the peak of a matrix product in each precision, and what "auto" resolves to."""
    width = 256 if checks.is_quick else 8192
    peaks = {}
    for name, dtype, setting in (
        ("float32", torch.float32, "highest"),
        ("tf32", torch.float32, "high"),
        ("bfloat16", torch.bfloat16, "highest"),
    ):
        torch.set_float32_matmul_precision(setting)
        left = torch.randn(width, width, device=device(), dtype=dtype)
        right = torch.randn(width, width, device=device(), dtype=dtype)
        seconds = seconds_of(lambda left=left, right=right: left @ right, 10)
        peaks[name] = 2 * width**3 / seconds / 1e12
    torch.set_float32_matmul_precision("highest")
    checks.add_fact("peaks", peaks)
    checks.add(
        "peak of a product of 8192 × 8192, TFLOP/s",
        "data sheet of an H200: 67 in float32, 494 in TF32, 989 in bfloat16",
        ", ".join(f"{name} {peak:.1f}" for name, peak in peaks.items()),
    )
    speeds = matrix_speeds(device().type)
    ratio = speeds["bfloat16"] / speeds["float32"]
    chosen = faster(speeds)
    checks.add(
        'precision = "auto"',
        "bfloat16, at least 1.5 times as fast as float32",
        f"{chosen}, {ratio:.1f} times as fast",
        chosen == "bfloat16" if has_gpu() else None,
    )


def seconds_of(step: Callable[[], object], count: int) -> float:
    """Return the mean seconds of a step after three steps that are not timed."""
    for _ in range(3):
        step()
    wait_for_gpu()
    start = perf_counter()
    for _ in range(count):
        step()
    wait_for_gpu()
    return (perf_counter() - start) / count


# Captured updates.


def check_memory_error(checks: Checks, place: str) -> None:
    """Exhaust the memory while an update is captured, forward or in the backward pass."""
    claim = f"memory that runs out in a capture ({place}) is recognised"
    if not has_gpu():
        checks.add(claim, "yes", "needs a GPU")
        return
    try:
        exhaust_memory(place)
    except Exception as error:
        checks.add(claim, "yes", f"{type(error).__name__}, {ran_out(error)}", ran_out(error))
    else:
        checks.add(claim, "yes", "there was no error", False)


def exhaust_memory(place: str) -> None:
    """Capture an update that allocates twice the card's memory, forward or in the backward pass."""
    too_much = 2 * torch.cuda.get_device_properties(0).total_memory
    weight = nn.Parameter(torch.ones(64, 64, device=device()))
    calls = []

    def allocate(gradient: Tensor) -> Tensor:
        torch.empty(too_much, dtype=torch.uint8, device=device())
        return gradient

    def update(batch: Batch) -> Tensor:
        calls.append(batch)
        product = weight @ weight
        if len(calls) == 2 and place == "forward":
            allocate(product)
        if len(calls) == 2 and place == "backward":
            product.register_hook(allocate)
        loss = product.sum() + batch.subwords.sum()
        loss.backward()
        weight.grad = None
        return loss.detach()

    captured = Captured(update, device())
    batch = draw_tagged(SHAPES["tiny"], 2, 16)
    captured(batch)
    captured(batch)


def check_equality(checks: Checks) -> None:
    """Compare the weights after updates of several shapes in float32, without dropout."""
    start = make_model(checks.shape("XLM-R base"), dropout=False)
    torch.manual_seed(1)
    batches = [draw_rounded(checks, 8, length) for length in (24, 32, 24, 24, 32, 24, 32, 24)]
    usual = trained_weights(start, batches, capture=False)
    again = trained_weights(start, batches, capture=False)
    captured = trained_weights(start, batches, capture=True)
    before = [weight.detach() for weight in start.parameters()]
    moved = distance(usual, before)
    share = distance(captured, usual) / moved
    largest = max(
        float((weight - captured_weight).abs().max())
        for weight, captured_weight in zip(usual, captured, strict=True)
    )
    checks.add(
        "captured updates = usual ones, 8 updates in float32: norm of the difference, of all changes",
        "within rounding",
        f"{share:.1g} (largest difference of a weight {largest:.1g}; two usual trainings "
        f"{distance(again, usual) / moved:.1g})",
        share < 1e-3,
    )


def make_model(shape: Architecture, *, dropout: bool = True) -> nn.Module:
    """Make a tagging model of random weights on the GPU."""
    with torch.device(device()):
        return new_model(shape, pretrains=False, dropout=dropout).to(device())


def draw_rounded(checks: Checks, rows: int, length: int) -> Batch:
    """Draw a batch in one of few shapes."""
    batch = draw_tagged(checks.shape("XLM-R base"), rows, length)
    return batch.rounded(padding=1, longest=LENGTH, words=True)


def trained_weights(start: nn.Module, batches: Sequence[Batch], *, capture: bool) -> list[Tensor]:
    """Return the weights after training a copy of a model.

    Adam divides gradients by their size, and some are zero but for rounding (biases of keys). The large
    epsilon keeps these weights where they are.
    """
    model = copy.deepcopy(start)
    updates = Updates(learning_rate=1e-4, precision="float32", epsilon=1e-5, capture=capture or None)
    fit(model, batches, TASKS["upos"].loss, updates=updates, seed=0)
    return [weight.detach() for weight in model.parameters()]


def distance(weights: Sequence[Tensor], second_weights: Sequence[Tensor]) -> float:
    """Return the norm of the difference."""
    squares = [
        (weight - second_weight).double().square().sum()
        for weight, second_weight in zip(weights, second_weights, strict=True)
    ]
    return float(torch.stack(squares).sum().sqrt())


def check_dropout(checks: Checks) -> None:
    """Replay a forward pass with several seeds."""
    model = make_model(checks.shape("XLM-R base")).train()
    batch = draw_rounded(checks, 8, 32)
    captured = Captured(lambda moved: TASKS["upos"].loss(model, moved).detach(), device())
    losses = []
    for seed in (1, 1, 2, 1, 2, 3):
        torch.manual_seed(seed)
        losses.append(round(float(captured(batch)), 6))
    usual, *replays = losses
    depends_on_seed = replays[0] == replays[2] and replays[1] == replays[3] and len(set(replays)) == 3
    checks.add(
        "dropout of replayed updates depends only on the seed",
        "yes",
        f"losses with seeds 1 2 1 2 3: {' '.join(f'{loss:.6f}' for loss in replays)}; not captured, seed 1: "
        f"{usual:.6f}",
        depends_on_seed,
    )


# Speed and memory of updates.


def check_usual(checks: Checks) -> None:
    """Time usual updates of all encoders in bfloat16."""
    for name, length, measured in measured_encoders(checks, "bfloat16", capture=False):
        add_speed(checks, name, length, measured, captured=False)


def check_captured(checks: Checks) -> None:
    """Time captured updates of all encoders in bfloat16."""
    for name, length, measured in measured_encoders(checks, "bfloat16", capture=True):
        add_speed(checks, name, length, measured, captured=True)


def check_float32(checks: Checks) -> None:
    """Time usual updates of all encoders in float32, without TF32."""
    for name, length, measured in measured_encoders(checks, "float32", capture=False):
        add_speed(checks, name, length, measured, captured=False)


def check_tf32(checks: Checks) -> None:
    """Time updates in float32 with and without TF32 in matrix products."""
    shape = checks.shape("XLM-R base")
    updates = Updates(learning_rate=1e-5, precision="float32")
    milliseconds = {}
    for setting in ("highest", "high"):
        torch.set_float32_matmul_precision(setting)
        milliseconds[setting] = measure(shape, LENGTH, checks.size, updates=updates).seconds * 1e3
    torch.set_float32_matmul_precision("highest")
    checks.add(
        "XLM-R base, 32 × 128, float32, ms: as trained, with TF32",
        "no claim (TF32 is never used)",
        f"{milliseconds['highest']:.1f}, {milliseconds['high']:.1f}",
    )


def measured_encoders(
    checks: Checks, precision: str, *, capture: bool
) -> Iterator[tuple[str, int, Measurement]]:
    """Yield name, length and measurement of the training of each encoder, the most decisive ones first."""
    updates = Updates(learning_rate=1e-5, precision=precision, capture=capture or None)
    cases = [(name, length) for name in TAGGING for length in (SENTENCE, LENGTH)]
    if precision == "bfloat16":
        cases.insert(4, (PRETRAINED, LENGTH))
    if checks.is_quick:  # All have the same shape.
        cases = [cases[0], cases[4]]
    for name, length in cases:
        pretrains = name == PRETRAINED
        shape = checks.shape(name)
        yield name, length, measure(shape, length, checks.size, updates=updates, pretrains=pretrains)
        if has_gpu():
            torch.cuda.empty_cache()


def add_speed(checks: Checks, name: str, length: int, measured: Measurement, *, captured: bool) -> None:
    """Add the rows of a training's speed and memory."""
    title = name if name == PRETRAINED else f"{name}, tagging"
    milliseconds = measured.seconds * 1e3
    rows = f"{measured.rows} × {length}"
    text = line(f"{title}, captured" if captured else title, measured)
    checks.add_fact("lines", [*checks.facts.get("lines", []), text])
    peak = checks.facts.get("peaks", {}).get(measured.precision)
    share = f"{measured.speed / peak:.0%} of peak" if peak else "share of peak not measured"
    speeds = f"{milliseconds:.1f} ms, {share}, {measured.planned_speed:.0f} TFLOP/s of the plan"
    times = checks.facts.get("milliseconds", {})
    key = f"{name} {length} {measured.precision}"
    if captured:
        usual = times.get(key)
        gain = f", {usual / milliseconds:.2f} times as fast as usual" if usual else ""
        reserved = torch.cuda.max_memory_reserved() / 1e9 if has_gpu() else 0.0
        checks.add(
            f"{title}, {rows}, {measured.precision}, captured",
            "faster than usual",
            f"{speeds}{gain}; {measured.peak / 1e9:.2f} GB allocated, {reserved:.2f} reserved, estimate "
            f"{measured.estimate / 1e9:.2f}",
            milliseconds < usual if usual and has_gpu() else None,
        )
        return
    checks.add_fact("milliseconds", {**times, key: milliseconds})
    stated = stated_milliseconds().get((title, rows, measured.precision))
    checks.add(
        f"{title}, {rows}, {measured.precision}",
        f"{stated} ms" if stated else "",
        speeds,
        milliseconds < 1.2 * stated if stated and has_gpu() else None,
    )
    ratio = measured.peak / measured.estimate
    checks.add(
        f"{title}, {rows}, {measured.precision}: peak of memory, GB",
        "within 8 % of the estimate",
        f"{measured.peak / 1e9:.2f}, estimate {measured.estimate / 1e9:.2f} ({ratio - 1:+.1%})",
        abs(ratio - 1) <= 0.08 if has_gpu() else None,
    )


def stated_milliseconds() -> dict[tuple[str, str, str], float]:
    """Return the milliseconds of the page's table, by encoder, rows and precision."""
    stated = {}
    for text in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        if len(cells) == 9 and re.fullmatch(r"[\d.]+", cells[3]):
            stated[cells[0], cells[1], cells[2]] = float(cells[3])
    return stated


def check_plain_loop(checks: Checks) -> None:
    """Time transformers' model in a plain loop."""
    milliseconds = plain_milliseconds(checks)
    checks.add_fact("plain", milliseconds)
    usual = checks.facts.get("milliseconds", {}).get("XLM-R base 36 bfloat16")
    checks.add(
        "XLM-R base, 32 × 36, bfloat16, transformers in a plain loop, ms",
        "28 to 31, as long as isogloss",
        f"{milliseconds:.1f}, isogloss {f'{usual:.1f}' if usual else 'not measured'}",
        usual < 1.15 * milliseconds if usual and has_gpu() else None,
    )


def check_compiled_loop(checks: Checks) -> None:
    """Time transformers' model in a plain loop, compiled."""
    options = {"mode": "reduce-overhead"} if has_gpu() else {"backend": "eager"}
    checks.add(
        "XLM-R base, 32 × 36, bfloat16, plain loop compiled (reduce-overhead), ms",
        "no claim",
        f"{plain_milliseconds(checks, **options):.1f}",
    )


def plain_milliseconds(checks: Checks, **compile_options: Any) -> float:
    """Return milliseconds of an update in a loop of autocast, fused AdamW and clipping, or compiled."""
    shape = checks.shape("XLM-R base")
    size = checks.size
    model = make_model(shape).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    batches = [draw_tagged(shape, size.rows, SENTENCE).to(device()) for _ in range(4)]
    network = torch.compile(model, **compile_options) if compile_options else model
    steps = []

    def step() -> None:
        batch = batches[len(steps) % len(batches)]
        steps.append(batch)
        with torch.autocast(device().type, torch.bfloat16):
            mask = torch.ones_like(batch.subwords)
            logits = network(input_ids=batch.subwords, attention_mask=mask).logits
        scores = logits[batch.rows, batch.columns].float()
        nn.functional.cross_entropy(scores, batch.gold).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return seconds_of(step, size.updates) * 1e3


def check_kernels(checks: Checks) -> None:
    """Count the kernels of an update, and how long they compute."""
    claim = "XLM-R base, 32 × 36, bfloat16: kernels of an update, ms of the card"
    if not has_gpu():
        checks.add(claim, "1,350 kernels, 9 ms", "needs a GPU")
        return
    shape = checks.shape("XLM-R base")
    model = make_model(shape)
    batches = [draw_tagged(shape, checks.size.rows, SENTENCE) for _ in range(32)]
    updates = Updates(learning_rate=1e-5, precision="bfloat16")
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        fit(model, batches, TASKS["upos"].loss, updates=updates, seed=0)
        wait_for_gpu()
    kernels = kernels_of(profiler)
    count = sum(kernel.count for kernel in kernels) / len(batches)
    milliseconds = sum(kernel.self_device_time_total for kernel in kernels) / 1e3 / len(batches)
    longest = sorted(kernels, key=lambda kernel: -kernel.self_device_time_total)[:5]
    names = ", ".join(
        f"{kernel.key[:40]} {kernel.self_device_time_total / 1e3 / len(batches):.2f}" for kernel in longest
    )
    text = f"{count:,.0f} kernels, {milliseconds:.1f} ms; most: {names}"
    checks.add(claim, "1,350 kernels, 9 ms", text, abs(count / 1350 - 1) < 0.2 and milliseconds < 12)


def kernels_of(profiler: Any) -> list[Any]:
    """Return the averages of everything that ran on the GPU."""
    return [event for event in profiler.key_averages() if event.device_type.name == "CUDA"]


# Checkpoints.


@dataclass(frozen=True)
class TimedCheckpoints(Checkpoints):
    """Checkpoints that measure how long the training waits for them."""

    saves: list[float] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)

    def save(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, state: State, *, uses_thread: bool = False
    ) -> None:
        start = perf_counter()
        super().save(model, optimizer, state, uses_thread=uses_thread)
        self.saves.append(perf_counter() - start)

    def finish(self) -> None:
        start = perf_counter()
        super().finish()
        self.finishes.append(perf_counter() - start)

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class RepeatedBatches:
    """A few batches, repeated."""

    batches: Sequence[Batch]
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, step: int) -> Batch:
        if step >= self.count:
            raise IndexError(step)
        return self.batches[step % len(self.batches)]


def check_checkpoint(checks: Checks) -> None:
    """Write single checkpoints of a base encoder with moments and best weights."""
    model = make_model(checks.shape("XLM-R base"))
    optimizer = adamw(model, Updates())
    batch = draw_tagged(checks.shape("XLM-R base"), 4, SENTENCE).to(device())
    TASKS["upos"].loss(model, batch).backward()
    optimizer.step()
    weights = sum(weight.numel() for weight in model.parameters())
    best_weights = on_host(dict(model.named_parameters()))
    wait_for_gpu()
    seconds_by_writer = {}
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = TimedCheckpoints(Path(folder), every=1)
        for step, (writer, in_thread) in enumerate(
            (("by a thread", True), ("by a thread, again", True), ("without a thread", False)), start=1
        ):
            start = perf_counter()
            checkpoints.save(model, optimizer, State(step, {}, best_weights), uses_thread=in_thread)
            blocked = perf_counter() - start
            checkpoints.finish()
            seconds_by_writer[writer] = perf_counter() - start
            checks.add(
                f"a checkpoint written {writer}, s: the training waits, the whole",
                "waits only for the copy" if in_thread else "no claim",
                f"{blocked:.2f}, {seconds_by_writer[writer]:.2f}; {checkpoints.size / 1e9:.2f} GB",
                blocked < 0.5 * seconds_by_writer[writer] if in_thread and has_gpu() else None,
            )
        size = checkpoints.size
    checks.add_fact("checkpoint seconds", seconds_by_writer["without a thread"])
    checks.add(
        "bytes of a checkpoint per weight",
        "16",
        f"{size / weights:.2f}",
        abs(size / weights / 16 - 1) < 0.01 if not checks.is_quick else None,
    )


def check_checkpoint_share(checks: Checks) -> None:
    """Train a base encoder with and without checkpoints."""
    shape = checks.shape("XLM-R base")
    start = make_model(shape)
    batches = [draw_tagged(shape, checks.size.rows, SENTENCE) for _ in range(16)]
    warm_count = 4 if checks.is_quick else 40
    train_with(start, RepeatedBatches(batches, warm_count), None)
    update_seconds = train_with(start, RepeatedBatches(batches, warm_count), None) / warm_count
    seconds = 1 if checks.is_quick else min(checks.options.training_seconds, checks.seconds_left / 3)
    count = max(20, round(seconds / update_seconds))
    every = count // 2 if checks.is_quick else Updates().checkpoint_every
    repeated = RepeatedBatches(batches, count)
    without = train_with(start, repeated, None)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = TimedCheckpoints(Path(folder), every=every)
        seconds_with = train_with(start, repeated, checkpoints)
        size = checkpoints.size
    waited = sum(checkpoints.saves) + checkpoints.finishes[-1]
    last_save = checkpoints.saves[-1] if checkpoints.saves else 0.0
    checks.add(
        f"{count:,} updates of XLM-R base, 32 × 36, s: without checkpoints, with",
        "no claim",
        f"{without:.1f}, {seconds_with:.1f} ({seconds_with / without - 1:+.1%})",
    )
    checks.add(
        "share of this training that waits for checkpoints",
        f"at most {CHECKPOINT_SHARE:.0%}, but the first checkpoint is always written",
        f"{waited / seconds_with:.1%}: {waited:.2f} s, of which {checkpoints.finishes[-1]:.2f} at the end; "
        f"{len(checkpoints.saves)} checkpoints of {size / 1e9:.2f} GB",
        waited / seconds_with <= CHECKPOINT_SHARE if has_gpu() else None,
    )
    checks.add(
        "share of a long training that waits for checkpoints (arithmetic)",
        f"at most {CHECKPOINT_SHARE:.0%}",
        f"{CHECKPOINT_SHARE / (1 + CHECKPOINT_SHARE):.1%}: {last_save:.2f} s at most every "
        f"{last_save / CHECKPOINT_SHARE:.0f} s",
    )
    seconds_of_write = checks.facts.get("checkpoint seconds")
    if seconds_of_write:
        checks.add(
            f"share if each {Updates().checkpoint_every} updates wrote one without a thread (arithmetic)",
            "",
            f"{seconds_of_write / (seconds_of_write + Updates().checkpoint_every * without / count):.0%}",
        )


def train_with(start: nn.Module, batches: RepeatedBatches, checkpoints: Checkpoints | None) -> float:
    """Return the seconds of training a copy of a model, which stores its best weights."""
    model = copy.deepcopy(start)
    callbacks = Callbacks(evaluate=lambda _: [{"score": 1.0}], evaluate_at=(1,), checkpoints=checkpoints)
    updates = Updates(learning_rate=1e-5, precision="bfloat16")
    wait_for_gpu()
    begin = perf_counter()
    fit(model, batches, TASKS["upos"].loss, updates=updates, seed=0, callbacks=callbacks)
    wait_for_gpu()
    return perf_counter() - begin


# Scoring and feeding.


def check_scoring(checks: Checks) -> None:
    """Score sentences in groups, as predict does."""
    count = 2 + GROUP_SIZE if checks.is_quick else 5000
    with tempfile.TemporaryDirectory() as folder:
        shape = SHAPES["tiny" if checks.is_quick else "base"]
        material = make_material(Path(folder), shape, sentences=count)
        model = UPOS.head(material.folder, seed=0, attention=fastest_attention()).to(device()).eval()
        tokenizer = material.tokenizer
    optimization = material.optimization("bfloat16")
    start = perf_counter()
    groups = [
        evaluation(UPOS, material.sentences[start_row : start_row + GROUP_SIZE], tokenizer, optimization)
        for start_row in range(0, count, GROUP_SIZE)
    ]
    encoding = perf_counter() - start
    groups[0].scores(model)
    scores, scoring = timed_scores(groups, model)
    start = perf_counter()
    for group, rows in zip(groups, scores, strict=True):
        group.task.decode(group.examples, group.rows, rows)
    decoding = perf_counter() - start
    one_group = evaluation(UPOS, material.sentences, tokenizer, optimization)
    _, at_once = timed_scores([one_group], model)
    checks.add(
        f"predict, mBERT, {count:,} sentences: sentences/s (s: encoding, scoring, decoding)",
        "no claim",
        f"{count / (encoding + scoring + decoding):,.0f} ({encoding:.2f}, {scoring:.2f}, {decoding:.2f}); "
        f"scored as one group {at_once:.2f}",
    )
    if not has_gpu():
        checks.add("share of scoring in which the card computes", "no claim", "needs a GPU")
        return
    for name, evaluations in (("groups of 256", groups[:8]), ("one group", [one_group])):
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            _, seconds = timed_scores(evaluations, model)
        computing = sum(kernel.self_device_time_total for kernel in kernels_of(profiler)) / 1e6
        text = f"{computing / seconds:.0%} of {seconds:.2f} s (profiled)"
        checks.add(f"share of scoring in which the card computes, {name}", "no claim", text)


def timed_scores(groups: Sequence[Evaluation], model: Any) -> tuple[list[Any], float]:
    """Return the scores of each group, and the seconds of computing them."""
    wait_for_gpu()
    start = perf_counter()
    scores = [group.scores(model) for group in groups]
    wait_for_gpu()
    return scores, perf_counter() - start


def check_feeding(checks: Checks) -> None:
    """Time what an update does on the processor before it launches kernels."""
    places = tuple(range(1, SENTENCE - 1, 2))
    rows = [
        EncodedRow(
            example=number, subwords=list(range(5, 5 + SENTENCE)), positions=places, gold=(1,) * len(places)
        )
        for number in range(32)
    ]
    count = 10 if checks.is_quick else 200
    collating = seconds_of(partial(collate, rows, padding=1), count)
    batch = collate(rows, padding=1)
    moving = seconds_of(lambda: batch.to(device()), count)
    seeding = seconds_of(partial(torch.manual_seed, 1), count)
    checks.add(
        "a batch of 32 × 36, ms: collating, moving, seeding",
        "no claim",
        f"{collating * 1e3:.2f}, {moving * 1e3:.2f}, {seeding * 1e3:.2f}",
    )


# Programs.


def check_side_by_side(checks: Checks) -> None:
    """Run a recipe in one process and in four on the same card."""
    quick = ["--quick"] if checks.is_quick else []
    program = start_program(checks, ["benchmarks/devices.py", "--jobs", "4", *quick])
    exit_code, text = program.wait(checks.seconds_left - 3)
    checks.add(
        "four processes on one card: seconds, equal records, memory of a process",
        "0 records differ; 0.7 GB beside tensors",
        " ".join(text.split())[-600:],
        exit_code == 0 if has_gpu() else None,
    )


def check_recipes(checks: Checks) -> None:
    """Run whole recipes on the GPU and the CPU, all parts at the same time."""
    test = "tests/test_on_gpu.py::test_a_recipe_comes_to_the_same_numbers_on_a_gpu"
    options = ["-m", "pytest", "--gpu", "-p", "no:cacheprovider"]
    parts = RECIPES[:1] if checks.is_quick else RECIPES
    programs = {part: start_program(checks, [*options, f"{test}[{part}]"]) for part in parts}
    for part, program in programs.items():
        exit_code, text = program.wait(checks.seconds_left - 3)
        last_line = text.strip().splitlines()[-1] if text.strip() else "no output"
        checks.add(
            f"recipes on a GPU and a CPU, part {part}",
            "within 0.5 % or 0.002",
            f"{last_line} (exit code {exit_code}, {program.seconds:.0f} s)",
            exit_code == 0 and "passed" in last_line if has_gpu() else None,
        )
        if exit_code:
            print("\n".join(text.splitlines()[-60:]), flush=True)


def check_ray(checks: Checks) -> None:
    """Run a recipe in Ray tasks that share the card."""
    claim = "Ray: four tasks share a card"
    if find_spec("ray") is None:
        checks.add(claim, "0 runs fail", "not checked: Ray is not installed")
        return
    if checks.is_quick or not has_gpu():
        checks.add(claim, "0 runs fail", "not checked: needs a GPU, and not with --quick")
        return
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        outcome = isogloss.run(
            recipe(**SMALL_RECIPE), out=folder, engine="ray", gpu_share=0.25, report=False
        ).outcome
    text = f"{len(outcome.made)} made, {len(outcome.failed)} failed, {perf_counter() - start:.0f} s"
    checks.add(claim, "0 runs fail", text, bool(outcome.made) and not outcome.failed)


def check_rest(checks: Checks) -> None:
    """State what one card cannot show."""
    checks.add("two GPUs, NCCL, models in shares, several nodes", "have not been run", "not with one card")


@dataclass
class Program:
    """A Python program that runs while others do."""

    process: "subprocess.Popen[bytes]"
    output: Path
    begin: float
    seconds: float = 0.0

    def wait(self, limit: float) -> tuple[int, str]:
        """Return exit code (124: too late) and output."""
        try:
            exit_code = self.process.wait(max(1.0, limit))
        except subprocess.TimeoutExpired:
            self.process.kill()
            exit_code = 124
        self.seconds = perf_counter() - self.begin
        return exit_code, self.output.read_text(encoding="utf-8", errors="replace")


def start_program(checks: Checks, words: Sequence[str]) -> Program:
    """Start Python with these arguments in the project's root."""
    folders = [str(ROOT / name) for name in ("src", "tests")]
    paths = [*folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    number = len(list(checks.log.parent.glob(f"{checks.section}-*.txt")))
    output = checks.log.parent / f"{checks.section}-{number}.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-u", *words],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    return Program(process, output, perf_counter())


@dataclass(frozen=True)
class Section:
    """A part of the checks."""

    check: Callable[[Checks], None]
    seconds: float
    """When it is stopped."""
    at_least: float = 5.0
    """Seconds of the budget without which it does not start."""


SECTIONS = {
    "peaks": Section(check_peaks, 40),
    "memory-forward": Section(partial(check_memory_error, place="forward"), 40),
    "memory-backward": Section(partial(check_memory_error, place="backward"), 40),
    "equality": Section(check_equality, 60),
    "dropout": Section(check_dropout, 40),
    "checkpoint": Section(check_checkpoint, 90),
    "usual": Section(check_usual, 90),
    "captured": Section(check_captured, 90),
    "checkpoint-share": Section(check_checkpoint_share, 150, 40),
    "recipes": Section(check_recipes, 170, 30),
    "plain-loop": Section(check_plain_loop, 30),
    "kernels": Section(check_kernels, 40),
    "scoring": Section(check_scoring, 60),
    "feeding": Section(check_feeding, 30),
    "side-by-side": Section(check_side_by_side, 150, 30),
    "float32": Section(check_float32, 90),
    "tf32": Section(check_tf32, 40),
    "ray": Section(check_ray, 90),
    "compiled-loop": Section(check_compiled_loop, 90),
    "rest": Section(check_rest, 20, 0),
}
"""In order: the cheap and decisive ones first."""


if __name__ == "__main__":
    main()
