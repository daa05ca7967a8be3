"""A study of negative interference as runs leave it, with gains that are put in."""

from kept_runs import answers, write_scores
from synthetic_runs import measure, write_plan, write_run

LEVEL = 0.2
"""What all models gain over ``answers``, which takes no loss."""

JOINT = ("qaa", "qad")


def content(languages, kind="", method="masked-language-modelling", seed=0, lines=None):
    modules = {"modules": {"kind": "Modules", "fields": {"kind": kind, "reduction": 4}}} if kind else {}
    return {
        "kind": "pretrain",
        "text": ["rawtext"],
        "languages": list(languages),
        "architecture": {"kind": "Architecture", "vocabulary": 4000},
        "method": {"kind": method, "vocabulary_lines": 200000},
        "seed": seed,
        **modules,
        **({"lines": lines} if lines else {}),
    }


def pretrain_rows(languages, kind, perplexity, rise):
    for epoch, factor in ((1, 2.0), (2, 1.0), (3, rise)):
        for code in languages:
            about = {"step": 100 * epoch, "epoch": epoch, "language": code, "split": "dev"}
            yield {**about, "metric": "perplexity", "score": perplexity * factor}
    yield {"parameters": 1000, "language": ""}
    if kind not in ("", "shared-adapter"):
        yield from ({"parameters": 50, "language": code} for code in languages)


def write_encoder(out, label, languages, seed, *, kind="", how="masked-language-modelling", **more):
    """Write the run that made an encoder; ``perplexity`` and ``rise`` are of its held-out text."""
    perplexity, rise, lines = more.get("perplexity", 20.0) + seed, more.get("rise", 1.0), more.get("lines")
    record = {
        "kind": "pretrain",
        "title": f"encoder {label}",
        "run": content(languages, kind, how, seed, lines),
        "rows": list(pretrain_rows(languages, kind, perplexity, rise)),
    }
    return write_run(out, f"pre-{label}-{seed}", record)


def write_models(out, label, languages, seed, within, zero_shot, *, keep=True):
    """Write the scores of both methods of the grid, as far as an encoder reads their languages."""
    about = {"encoder": label, "seed": seed, "corpus": "xnli", "task": "nli", "source": "qaa", "keep": keep}
    names = []
    if "qaa" in languages:
        tests = [*answers(seed, LEVEL + within, ["qaa"])]
        tests += [*answers(seed, LEVEL + zero_shot, ["pad", "qad"])][1:] if "qad" in languages else []
        names.append(write_scores(out, f"{label}-source-{seed}", tests, **about))
    if "qad" in languages:
        tests = [*answers(seed, LEVEL + within, ["pad", "pad2", "qad"])][2:]
        other = {**about, "source": "", "target": "qad", "method": "target-only"}
        names.append(write_scores(out, f"{label}-target-{seed}", tests, **other))
    return names


def build_study(out, encoders, *, seeds=(0, 1, 2), keep=True, more=()):
    """Write encoders given as {label: (languages, kind, how, within, zero-shot, further)}; return the ids."""
    names = []
    for label, (languages, kind, how, within, zero_shot, further) in encoders.items():
        for seed in seeds:
            names.append(write_encoder(out, label, languages, seed, kind=kind, how=how, **further))
            names += write_models(out, label, languages, seed, within, zero_shot, keep=keep)
    names += [write_run(out, f"more{n}", measure(kind, rows)) for n, (kind, rows) in enumerate(more)]
    write_plan(out, names, title="Interference")
    return names


MLM, META = "masked-language-modelling", "meta-learning"


def paper(*, mono=0.15, own_within=0.1, own_zero=-0.1, meta_within=0.15, meta_zero=0.1):
    """Give encoders whose models differ from the joint one's by so much."""
    return {
        "mono-a": (("qaa",), "", MLM, mono, 0.0, {"perplexity": 9.0}),
        "mono-d": (("qad",), "", MLM, mono, 0.0, {"perplexity": 9.0}),
        "joint": (JOINT, "", MLM, 0.0, 0.0, {}),
        "ffn": (JOINT, "feed-forward", MLM, own_within, own_zero, {"perplexity": 15.0}),
        "shared": (JOINT, "shared-adapter", MLM, 0.0, 0.0, {}),
        "meta": (JOINT, "adapter", META, meta_within, meta_zero, {"perplexity": 12.0}),
    }
