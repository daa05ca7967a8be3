"""A folder of runs as an experiment leaves it, with known answers.

The source score of the paths is ``level`` minus a dip in the middle; the target score is a straight line
from ``low`` to ``high``; seeds shift the target by ``shift`` and the source by a tenth of it.
"""

import json
from dataclasses import dataclass

ALPHAS = tuple(round(-0.5 + 0.1 * step, 1) for step in range(21))


@dataclass(frozen=True, kw_only=True)
class World:
    """What the synthetic experiment is like."""

    targets: tuple[str, ...] = ("de", "fr")
    tasks: tuple[str, ...] = ("upos",)
    encoders: tuple[str, ...] = ("mini",)
    seeds: tuple[int, ...] = (0, 1, 2)
    level: float = 0.94
    dip: float = 0.01
    low: float = 0.6
    high: float = 0.85
    shift: float = 0.02
    ratio: float = 1.02
    angle: float = 57.0
    plane_step: int = 2
    title: str = "POS: does English carry over?"

    def about(self, task, encoder, target, seed):
        return {
            "corpus": "ud",
            "task": task,
            "encoder": encoder,
            "source": "en",
            "target": target,
            "seed": seed,
        }

    def source(self, alpha, seed):
        return self.level - 4 * self.dip * alpha * (1 - alpha) + self.shift * (seed - 1) / 10

    def target(self, alpha, seed):
        return self.low + (self.high - self.low) * alpha + self.shift * (seed - 1) * (1 - alpha)


def settings(world):
    return [
        (task, encoder, target, seed)
        for encoder in world.encoders
        for task in world.tasks
        for target in world.targets
        for seed in world.seeds
    ]


def path_rows(world, setting):
    for start in ("source-only", "target-only"):
        for alpha in ALPHAS:
            source = world.source(alpha, setting[3])
            target = world.target(alpha, setting[3])
            if start == "target-only":
                source, target = target, source
            for role, code, score in (("source", "en", source), ("target", setting[2], target)):
                yield {
                    **world.about(*setting),
                    "start": start,
                    "end": "bilingual",
                    "part": "all",
                    "alpha": alpha,
                    "language": code,
                    "role": role,
                    "split": "dev",
                    "metric": "accuracy",
                    "score": round(score, 6),
                }


def plane_rows(world, setting):
    for x in (*ALPHAS[:: world.plane_step], 0.0, 1.0):
        for y in (*ALPHAS[:: world.plane_step], 0.0, 1.0):
            source = world.level - 0.3 * max(0, y) ** 2 - 0.02 * x**2
            target = world.high - (world.high - world.low) * abs(x) - 0.05 * y**2
            for role, code, score in (("source", "en", source), ("target", setting[2], target)):
                yield {
                    **world.about(*setting),
                    "part": "all",
                    "alpha_source": x,
                    "alpha_target": y,
                    "language": code,
                    "role": role,
                    "split": "dev",
                    "metric": "accuracy",
                    "score": max(0.1, score),
                }


def delta_rows(world, setting):
    norm = 4.0 + setting[3] / 10
    yield {
        **world.about(*setting),
        "part": "all",
        "norm_source": norm * world.ratio,
        "norm_target": norm,
        "ratio": world.ratio,
        "angle": world.angle + setting[3] - 1,
    }


def score_rows(world, task, encoder, seed):
    def row(method, target, code, score):
        about = world.about(task, encoder, target, seed)
        tail = {"split": "test", "metric": "accuracy", "score": score, "baseline": 0.21, "examples": 500}
        return {**about, "method": method, "language": code, **tail}

    yield row("source-only", "", "en", world.source(0, seed))
    for target in world.targets:
        yield row("source-only", "", target, world.target(0, seed))
        yield row("bilingual", target, "en", world.source(1, seed))
        yield row("bilingual", target, target, world.target(1, seed))
        yield row("target-only", target, "en", world.low)
        yield row("target-only", target, target, world.high)


def retrieval_rows(world):
    for encoder in world.encoders:
        for target in world.targets:
            for layer in range(5):
                found = 0.1 + 0.2 * min(layer, 3)
                tail = {"accuracy_forward": found, "accuracy_backward": found - 0.05, "chance": 0.01}
                yield {
                    "encoder": encoder,
                    "first": "en",
                    "second": target,
                    "layer": layer,
                    "candidates": 100,
                    **tail,
                }


def pretrain_rows(world):
    for step in range(0, 1001, 100):
        for code in ("en", *world.targets):
            loss = 8 - 5 * step / 1000 + len(code) * 0.01
            yield {"step": step, "subwords": step * 4096, "loss": loss, "language": code, "rate": 1e-3}


def epoch_rows(world, method, target, seed):
    for epoch in (1, 2, 3, 4, 5):
        for code in ("en",) if method == "source-only" else ("en", target):
            score = world.level - 0.3 / epoch**2 + seed / 500
            tail = {"split": "dev", "metric": "accuracy", "score": score, "chosen": epoch == 4}
            yield {"epoch": epoch, "step": epoch * 100, "loss": 1 / epoch, "language": code, **tail}


def write_run(out, name, record):
    """Write one finished run and what lies beside it."""
    folder = out / name
    folder.mkdir(parents=True)
    defaults = {"id": name, "title": name, "needs": [], "warnings": [], "run": {}}
    (folder / "record.json").write_text(json.dumps({**defaults, **record}), encoding="utf-8")
    made = {"seconds": 12.5, "device": "cpu", "threads": 1, "precision": "float32", "versions": {}}
    (folder / "made.json").write_text(json.dumps(made), encoding="utf-8")
    return name


def measure(diagnostic, rows, title=""):
    run = {"kind": "measure", "diagnostic": {"kind": diagnostic}}
    return {"kind": "measure", "title": title or f"{diagnostic}", "run": run, "rows": list(rows)}


def write_plan(out, names, **changes):
    plan = {"title": "No title", "recipe": "", "command": "isogloss run pos.toml", "runs": names, **changes}
    (out / "plan.json").write_text(json.dumps(plan), encoding="utf-8")


def build(out, world, *, plane=True):
    """Write the whole experiment; return the ids of its runs."""
    out.mkdir(parents=True, exist_ok=True)
    names = [write_run(out, "pre", {"kind": "pretrain", "title": "mini", "rows": list(pretrain_rows(world))})]
    for index, seed in enumerate(world.seeds):
        for method, target in (("source-only", ""), ("bilingual", world.targets[0])):
            title = f"{method} en{'+' + target if target else ''}, upos, seed {seed}"
            rows = list(epoch_rows(world, method, target, seed))
            names.append(
                write_run(out, f"ft-{method}-{index}", {"kind": "fine-tune", "title": title, "rows": rows})
            )
        for task in world.tasks:
            for encoder in world.encoders:
                rows = score_rows(world, task, encoder, seed)
                names.append(write_run(out, f"sc-{task}-{encoder}-{index}", measure("scores", rows)))
    for index, setting in enumerate(settings(world)):
        names.append(write_run(out, f"path{index}", measure("interpolation", path_rows(world, setting))))
        names.append(write_run(out, f"delta{index}", measure("deltas", delta_rows(world, setting))))
        if plane:
            names.append(write_run(out, f"plane{index}", measure("plane", plane_rows(world, setting))))
    names.append(write_run(out, "retrieval", measure("retrieval", retrieval_rows(world))))
    write_plan(out, names, title=world.title, recipe='title = "POS"\n[grid]\nseeds = [0, 1, 2]\n')
    return names


def build_small(out, world):
    """Write scores and deltas of each seed only: enough to report on, and quick to draw."""
    names = []
    for index, setting in enumerate(settings(world)):
        rows = score_rows(world, setting[0], setting[1], setting[3])
        names.append(write_run(out, f"score{index}", measure("scores", rows)))
        names.append(write_run(out, f"delta{index}", measure("deltas", delta_rows(world, setting))))
    write_plan(out, names, title=world.title)
    return names
