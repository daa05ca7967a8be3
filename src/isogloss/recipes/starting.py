"""The first recipe of an experiment, written from a few answers, with comments on what can be changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from isogloss.recipes.recipe_text import to_toml


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a new recipe says; the defaults need no data."""

    corpus: str = "wikiann"
    """A corpus with labels, or a TOML file that describes one."""
    task: str = ""
    """One of its tasks; its own when it has one."""
    source: str = "qaa"
    """The language that is trained on."""
    targets: Sequence[str] = ("qab", "qad")
    """The languages that are transferred to."""
    encoder: str = "shipped"
    """The encoder: shipped, a folder, or a name on the Hugging Face hub."""
    methods: Sequence[str] = ("source-only",)
    """Methods of fine-tuning."""
    split: str = "test"
    """The split that models are scored on."""
    seeds: int = 3
    """How many seeds, from 0."""
    unlabelled: Sequence[str] = ()
    """Targets without labels, whose quality is to be estimated."""


def first_recipe(answers: Answers) -> str:
    """Return a recipe with comments; whether it can be planned is for a plan to say."""
    one = answers

    def said(name: str, value: object) -> str:
        return to_toml({name: value}).strip()

    task = f"{said('task', one.task)}\n" if one.task else ""
    source, targets = one.source, ", ".join(one.targets)
    measures = [("label-free", "dev")] if one.unlabelled else []
    measures += [("scores", one.split)]
    measures += [("transfer-gap", one.split)] if {*one.targets} - {*one.unlabelled} else []
    measured = "\n\n".join(f"[[measure]]\n{said('name', n)}\n{said('split', s)}" for n, s in measures)
    methods = "\n\n".join(f"[[grid.method]]\n{said('name', name)}" for name in one.methods)
    return f"""\
# isogloss run FILE --dry-run prints the plan, isogloss run FILE makes it, --scale small first tries it.
# All fields: docs/recipe.md; what can be named: isogloss list corpora|tasks|methods|diagnostics|encoders.
{said("title", f"How well does {one.corpus} transfer from {source} to {targets}?")}
{said("encoder", one.encoder)}  # or a folder, or a name on the hub: "xlm-roberta-base"

[grid]  # the product of all lists
{said("corpus", one.corpus)}
{task}{said("source", source)}  # "en+ar" trains on both at once
{said("targets", list(one.targets))}
{said("seeds", list(range(one.seeds)))}  # three or more, or nothing can be said about others
optimization = {{ epochs = 5 }}  # also learning_rate, batch_size …; a list makes one run for each value

{methods}

{measured}

[scale.small]
"grid.seeds" = [0]
"grid.examples" = 200
"grid.dev_examples" = 100
"grid.optimization" = {{ epochs = 1 }}
"""
