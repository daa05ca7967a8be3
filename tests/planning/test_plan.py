"""A recipe becomes the product of its lists, each run once, with ids that depend only on content."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from test_adjust_plan import RECIPE as ADJUSTING

from each import each
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.identity import content, identity
from isogloss.data.examples import SentencePair
from isogloss.features.pretraining.run import Pretrain
from isogloss.methods.plain import SourceOnly
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.checking import read_recipe
from isogloss.recipes.recipe_text import PAPERS, packaged_recipes, recipe_text
from isogloss.recipes.request import parse_change
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.run import needs, unresolved_models
from isogloss.tasks.inputs import examples_of
from isogloss.training.setting import Reads
from says import check_wording, says
from tiny import MODELS, RUNS, TINY, lines, tiny
from tiny_models import marian

EXAMPLES = Path(__file__).parents[2] / "examples"


def models(runs):
    return [run for run in runs if isinstance(run, FineTune)]


def measures(runs, name):
    return [run for run in runs if isinstance(run, Measure) and run.diagnostic.name == name]


@pytest.mark.parametrize(
    "name",
    [packaged_recipe for packaged_recipe in packaged_recipes() if not packaged_recipe.startswith(PAPERS)],
)
def test_every_packaged_recipe_can_be_planned(name):
    runs = plan_recipe(name, assume=True).runs  # Without the corpora and models that it names.
    assert runs
    assert len({identity(run) for run in runs}) == len(runs)


def test_the_quickstart_has_a_sensible_size():
    runs = plan_recipe("quickstart").runs
    kinds = Counter(run.name for run in runs)
    assert kinds["fine-tune"] == 5 * 3  # Seeds by source-only, target-only and bilingual of one target.
    assert len(measures(runs, "plane")) == 1


SPLIT_SIZES = {"dev": 400, "test": 400}
"""Sentences of the built-in languages' splits."""

MOST_SENTENCES = 170_000
"""Sentences that the models of the quickstart read, with three times the work for each in a training. That is
what two cores of a slow machine do in two minutes."""


def test_the_quickstart_stays_short():
    runs = plan_recipe("quickstart").runs
    work = 0
    for run in models(runs):
        for split in run.splits_read:
            work += run.optimization.epochs * split.examples * (3 if split.split == "train" else 1)
    for run in runs:
        if isinstance(run, Measure):
            sizes = [split.examples or SPLIT_SIZES[split.split] for split in run.splits_read]
            work += count_passes(run.diagnostic) * sum(sizes)
    assert 0 < work <= MOST_SENTENCES


def count_passes(diagnostic):
    """Return how often a diagnostic computes each sentence."""
    alphas = len(getattr(diagnostic, "alphas", (0.0,)))
    draws = getattr(diagnostic, "draws", 0)
    return alphas**2 if diagnostic.name == "plane" else alphas + draws


SMALL = [
    path
    for path in sorted(EXAMPLES.glob("*.toml"))
    if "[scale.small]" in (text := path.read_text(encoding="utf-8")) and "--data" not in text
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_the_small_scale_of_an_example_without_data_can_be_planned_and_its_titles_tell_runs_apart(path):
    plan = plan_recipe(str(path), scale="small")
    assert len(set(plan.titles.values())) == len(plan.runs) > 0


def deep(folder):
    """Let a model's config say that it has as many layers as Gemma 3 270M."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_hidden_layers": 18, "layer_types": None}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_every_example_can_be_planned(path, real_data, gemma3_text_folder, tmp_path):
    """Small models replace the models in weights/, which the project does not include."""
    if "weights/opus" in path.read_text(encoding="utf-8"):
        marian(tmp_path / "en-fr", ("en", "fr"))
    gemma = deep(shutil.copytree(gemma3_text_folder, tmp_path / "gemma"))
    for item in EXAMPLES.glob("*.toml"):  # It may extend another.
        text = item.read_text(encoding="utf-8").replace("weights/gemma", str(gemma))
        text = text.replace("weights/opus-en-fr", str(tmp_path / "en-fr"))
        (tmp_path / item.name).write_text(text, encoding="utf-8")
    assert plan_recipe(str(tmp_path / path.name), data=real_data.path).runs


RESULTS = EXAMPLES.with_name("docs") / "results"
READ = [
    *EXAMPLES.glob("*.toml"),
    *(path for path in RESULTS.rglob("*.toml") if "title = " in path.read_text()),
]


@pytest.mark.parametrize("path", sorted(READ), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_and_recipe_of_results_is_read(path):
    recipe = read_recipe(recipe_text(str(path))[0])
    assert recipe.grid or recipe.translate or recipe.measure


def test_the_grid_is_the_product_of_its_lists(plan):
    assert len(models(plan())) == MODELS
    assert len(plan()) == RUNS
    only = {"grid__method": [{"name": "bilingual"}], "measure": []}
    lists = {
        "grid__corpus": ["wikiann", "pawsx", "xnli"],
        "grid__source": ["qaa", "qac"],
        "grid__targets": ["qab", "qad"],
        "grid__seeds": [0, 1, 2],
        "grid__optimization": {"epochs": [1, 2], "learning_rate": [1e-4, 2e-4]},
    }
    assert len(plan(**only, **lists)) == 3 * 2 * 2 * 3 * 4


def test_a_source_is_no_target_of_its_own(plan):
    changes = {"grid__source": ["qaa", "qab"], "grid__targets": ["qaa", "qab", "qad"], "measure": []}
    pairs = {
        (run.source, run.target) for run in models(plan(grid__method=[{"name": "bilingual"}], **changes))
    }
    assert pairs == {(("qaa",), ("qab",)), (("qaa",), ("qad",)), (("qab",), ("qaa",)), (("qab",), ("qad",))}


def test_two_sources_at_once_are_one_source(plan):
    for run in each(models(plan(grid__source="qaa+qac", measure=[]))):
        assert run.source == ("qaa", "qac")


@pytest.mark.parametrize("text", [TINY, ADJUSTING], ids=["tiny", "adjusting"])
def test_shared_work_is_planned_once_and_before_what_needs_it(plan, text):
    runs = plan(text)
    ids = [identity(run) for run in runs]
    assert len(set(ids)) == len(ids)
    earlier = [identity(need) in ids[:place] for place, run in enumerate(runs) for need in needs(run)]
    assert earlier and all(earlier)


def test_methods_see_only_the_languages_they_train_on(plan):
    methods = [{"name": "source-only"}, {"name": "target-only"}, {"name": "bilingual"}]
    for run in each(models(plan(grid__method=methods, measure=[]))):
        assert bool(run.source) == (run.method.name != "target-only")
        assert bool(run.target) == (run.method.name != "source-only")


def test_a_method_is_trained_for_its_own_targets(plan):
    assert {run.target for run in models(plan()) if run.method.name == "bilingual"} == {("qab",)}
    (scored_language,) = {run.languages for run in measures(plan(), "transfer-gap")}
    assert scored_language == ("qaa", "qab", "qad")


def test_a_method_changes_the_optimization_for_itself(plan):
    epochs = {run.method.name: run.optimization.epochs for run in models(plan(grid__method__1__epochs=3))}
    assert epochs == {"source-only": 1, "bilingual": 3}


def test_one_method_twice_needs_labels(plan):
    twice = [{"name": "bilingual"}, {"name": "bilingual", "epochs": 2}]
    with says(ConfigError, "grid.method:", "'bilingual'"):
        plan(grid__method=twice, measure=[])
    labelled_rows = [twice[0], {**twice[1], "label": "longer"}]
    path = {"name": "interpolation", "between": ["bilingual", "longer"]}
    runs = plan(grid__method=labelled_rows, measure=[path])
    assert [subject.optimization.epochs for subject in measures(runs, "interpolation")[0].subjects] == [1, 2]


@pytest.mark.parametrize("inputs", ["paired", "translated"])
def test_a_path_is_walked_on_the_inputs_that_its_models_read(plan, get_refusal, inputs):
    methods = [
        {"name": "x-mixup", "layer": 1},
        {"name": "x-mixup", "layer": 1, "ratio": 0.0, "label": "none"},
    ]
    options = {"grid__corpus": "xnli", "translate": {"name": "built-in"}, "grid__targets": ["qab"]}
    table = {"name": "interpolation", "inputs": inputs, "between": ["none", "x-mixup"]}
    runs = measures(plan(grid__method=methods, measure=[table], **options), "interpolation")
    assert [(run.inputs, run.translated[0].languages) for run in runs] == [(inputs, "qab-qaa")] * 2
    fields = {
        "grid__method": [methods[0], {"name": "source-only", "label": "none"}],
        "measure": [table],
        **options,
    }
    if inputs == "paired":
        refusal = get_refusal(**fields)
        assert "source-only" in refusal and "x-mixup" in refusal
    else:
        assert len(measures(plan(**fields), "interpolation")) == 2


@pytest.mark.parametrize(
    "other_item",
    [{"layer": 2}, {"layer": 0}, {"attends": "cosine"}, {"learned_ratio": False}, {"residual": "summed"}],
)
def test_a_path_between_models_that_mix_otherwise_is_refused_in_the_plan(get_refusal, other_item):
    methods = [
        {"name": "x-mixup", "layer": 3},
        {"name": "x-mixup", "layer": 3, "label": "other", **other_item},
    ]
    table = {"name": "interpolation", "inputs": "paired", "between": ["other", "x-mixup"]}
    refusal = get_refusal(grid__corpus="pawsx", grid__targets=["qab"], grid__method=methods, measure=[table])
    assert "measure[0]: inputs:" in refusal


def test_titles_of_a_plan_say_what_tells_runs_of_one_method_apart(plan_changed):
    twice = [{"name": "source-only"}, {"name": "source-only", "label": "long", "epochs": 3}]
    titles = plan_changed(grid__method=twice, grid__seeds=[0], measure=[]).titles
    assert list(titles.values()) == [f"source-only: wikiann ner qaa, seed 0 (epochs={n})" for n in (1, 3)]


def test_a_label_is_no_part_of_an_id(plan):
    same_identities = [identity(run) for run in plan(grid__method__1__label="both", measure=[])]
    assert same_identities == [identity(run) for run in plan(measure=[])]


def test_measurements_take_the_targets_seeds_and_methods_asked_for(plan):
    table = {"name": "scores", "targets": ["qab"], "seeds": [1], "methods": ["source-only"]}
    (run,) = measures(plan(measure=[table]), "scores")
    assert (run.languages, run.subjects[0].seed, run.subjects[0].method.name) == (
        ("qaa", "qab"),
        1,
        "source-only",
    )


def test_a_method_can_go_on_from_another(plan):
    sample = [{"name": "few-shot", "start": "source-only", "shots": n, "label": f"{n}"} for n in (2, 4)]
    runs = plan(grid__method=[*sample, {"name": "source-only"}], measure=[], grid__seeds=[0])
    source_only, *_ = [model for model in models(runs) if model.start is None]
    other_models = [model for model in models(runs) if model.start is not None]
    assert [model.start for model in other_models] == [source_only] * 4
    assert all(source_only in needs(model) for model in other_models)
    assert {(model.method.shots, model.target) for model in other_models} == {
        (n, (language,)) for n in (2, 4) for language in ("qab", "qad")
    }
    assert other_models[0].title == ("few-shot (shots=2) after source-only: wikiann ner qaa+qab, seed 0")


@pytest.mark.parametrize(("dev", "read"), [("target", [("qab", "dev")]), ("shots", []), ("none", [])])
def test_few_shots_need_no_dev_set_of_the_target(plan, dev, read):
    sample = {"name": "few-shot", "start": "source-only", "dev": dev}
    runs = plan(grid__method=[sample, {"name": "source-only"}], measure=[], grid__targets=["qab"])
    (model, _) = (model for model in models(runs) if model.start)
    assert [(split.language, split.split) for split in model.splits_read] == [("qab", "train"), *read]


def test_targets_joined_by_plus_are_trained_on_at_once(plan):
    pair = {"grid__method": [{"name": "bilingual"}], "measure": [], "grid__seeds": [0]}
    runs = plan(grid__targets=["qab+qad", "qab"], **pair)
    assert [model.target for model in models(runs)] == [("qab", "qad"), ("qab",)]
    scores = measures(plan(grid__targets=["qab+qad"], **pair | {"measure": [{"name": "scores"}]}), "scores")
    assert {measure.languages for measure in scores} == {("qaa", "qab", "qad")}


def test_a_model_can_be_measured_on_another_corpus_and_in_other_languages(plan):
    changes = {"grid__corpus": "xnli", "grid__task": "nli"}
    table = {"name": "scores", "languages": ["qae", "qac"], "split": "test"}
    runs = plan(**changes, grid__method=[{"name": "source-only"}], measure=[table])
    for measure in measures(runs, "scores"):
        assert (measure.corpus, measure.languages) == ("xnli", ("qae", "qac"))
    gaps = [{"name": "transfer-gap", "split": "test"}, {**table, "name": "transfer-gap"}]
    runs = plan(**changes, grid__method=[{"name": "source-only"}], measure=gaps, grid__seeds=[0])
    assert {run.languages for run in measures(runs, "transfer-gap")} == {
        ("qaa", "qab", "qad"),
        ("qae", "qac"),
    }


def test_target_inputs_can_be_translated_or_mixed_with_the_source(plan):
    methods = [{"name": "source-only"}, {"name": "translate-train"}]
    tables = [{"name": "scores", "inputs": inputs} for inputs in ("translated", "mixed", "mixed-first")]
    runs = plan(
        grid__corpus="xnli", grid__method=methods, measure=tables, grid__targets=["qab"], grid__seeds=[0]
    )
    assert [run.inputs for run in measures(runs, "scores")] == [
        name for name in ("translated", "mixed", "mixed-first") for _ in methods
    ]
    assert "translate-train" in {model.title.partition(":")[0] for model in models(runs)}


def test_mixed_inputs_are_those_of_both_languages():
    def read(language):
        texts = (f"{language} premise", f"{language} hypothesis")
        return [SentencePair(id=str(n), first=texts[0], second=texts[1], label="neutral") for n in range(40)]

    mixed_examples = examples_of("mixed-first", "sw", ("en",), read)
    assert {(mixed_example.first, mixed_example.second) for mixed_example in mixed_examples} == {
        ("en premise", "sw hypothesis")
    }
    either_examples = examples_of("mixed", "sw", ("en",), read)
    assert {either_example.first[:2] + either_example.second[:2] for either_example in either_examples} == {
        "ensw",
        "swen",
    }
    assert examples_of("mixed", "en", ("en",), read) == read("en")
    assert examples_of("translated", "sw", ("en", "ar"), read) == read("sw-en")


def test_one_treebank_can_be_named_for_all_languages(plan):
    changes = {"grid__corpus": "ud", "grid__task": "upos", "grid__method": [{"name": "source-only"}]}
    runs = plan(**changes, measure=[{"name": "scores", "treebanks": "BuiltIn"}], grid__seeds=[0])
    (measure,) = measures(runs, "scores")
    assert measure.treebanks == (("qaa", "BuiltIn"), ("qab", "BuiltIn"), ("qad", "BuiltIn"))
    assert measure.title == "scores: source-only, seed 0, ud BuiltIn qaa qab qad dev"


def test_of_several_corpora_those_with_treebanks_take_the_choice(plan):
    several = {"grid__corpus": ["ud", "wikiann"], "grid__task": ["upos", "ner"]}
    one_method = {"grid__method": [{"name": "source-only"}], "grid__seeds": [0]}
    runs = plan(**several, **one_method, grid__treebanks={"qaa": "BuiltIn"}, measure=[{"name": "scores"}])
    chosen_treebanks = {run.corpus: run.treebanks for run in models(runs)}
    assert chosen_treebanks == {"ud": (("qaa", "BuiltIn"),), "wikiann": ()}
    assert {run.corpus: run.treebanks for run in measures(runs, "scores")} == chosen_treebanks


def test_ids_do_not_depend_on_order_folder_or_words(plan, tmp_path):
    text = TINY + '[[measure]]\nname = "run-variance"\n'
    ids = sorted(identity(run) for run in plan(text))
    assert ids == sorted(
        identity(run) for run in plan_recipe(str(tiny(tmp_path, text)), out=tmp_path / "elsewhere").runs
    )
    assert ids == sorted(identity(run) for run in plan(text, title="Another", grid__targets=["qad", "qab"]))
    assert ids == sorted(identity(run) for run in plan(text, grid__seeds=[1, 0]))
    grid = text.partition("[grid]\n")[2].partition("\n\n")[0]
    shuffled_text = "\n".join(reversed(grid.splitlines()))
    assert ids == sorted(identity(run) for run in plan(text.replace(grid, shuffled_text)))


@pytest.mark.parametrize(
    "grid",
    [
        {"method": [{"name": "source-only"}, {"name": "source-only", "peft": {"kind": "lora"}}]},
        {"corpus": "ud", "task": ["upos", "parsing"], "method": [{"name": "source-only"}]},
    ],
)
def test_the_variance_of_runs_is_that_of_models_which_differ_in_their_seed_alone(plan, grid):
    changes = {f"grid__{name}": value for name, value in grid.items()}
    groups = [
        run.models for run in measures(plan(**changes, measure=[{"name": "run-variance"}]), "run-variance")
    ]
    assert [[item.seed for item in group] for group in groups] == [[0, 1]] * 2
    assert all(len({(example.label, example.task) for example in group}) == 1 for group in groups)


@pytest.mark.parametrize(
    "change",
    [
        {"grid__seeds": [2, 3]},
        {"grid__examples": 17},
        {"grid__dev_examples": 7},
        {"grid__source": "qac"},
        {"grid__optimization__learning_rate": 1e-3},
        {"grid__optimization__precision": "float32"},
        {"grid__corpus": "pawsx"},
    ],
)
def test_what_changes_a_result_changes_the_id(plan, change):
    assert not {identity(run) for run in models(plan())} & {identity(run) for run in models(plan(**change))}


def test_a_run_knows_its_encoder_by_name_and_fingerprint_not_by_place(plan, bert_folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    moved_folder = shutil.copytree(bert_folder, tmp_path / "elsewhere" / bert_folder.name)
    folder = plan(encoder=str(bert_folder))
    translations = plan(encoder=str(moved_folder))
    assert [identity(run) for run in folder] == [identity(run) for run in translations]
    assert str(bert_folder.parent) not in str([content(run) for run in folder])
    with (moved_folder / "config.json").open("a") as config:
        config.write("\n")
    assert not {identity(run) for run in folder} & {identity(run) for run in plan(encoder=str(moved_folder))}


def test_data_are_known_by_their_fingerprint(plan, tmp_path):
    folder = tmp_path / "data" / "panx"
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}-en.tsv").write_text("Anna\tB-PER\n\n")
    changes = {
        "grid__source": "en",
        "grid__method": [{"name": "source-only"}],
        "measure": [],
        "data": tmp_path / "data",
    }
    identities_before = [identity(run) for run in plan(**changes)]
    assert identities_before == [identity(run) for run in plan(**changes)]
    (folder / "dev-en.tsv").write_text("Otto\tB-PER\n\n")
    assert not set(identities_before) & {identity(run) for run in plan(**changes)}


def test_an_encoder_made_here_is_made_before_its_models(plan):
    table = {
        "text": ["rawtext"],
        "languages": ["qaa", "qab"],
        "architecture": {"layers": 1, "dim": 32, "heads": 2},
    }
    runs = plan(encoder={"pretrain": table})
    assert isinstance(runs[0], Pretrain)
    assert sum(isinstance(run, Pretrain) for run in runs) == 1
    assert all(run.encoder == runs[0] for run in models(runs))


def test_encoders_alone_can_be_measured(plan):
    text = 'title = "t"\n[[measure]]\nname = "retrieval"\ncorpus = "bitext"\n'
    (run,) = plan(text + 'languages = ["qaa", "qab", "qad"]')
    assert run.languages == ("qaa", "qab", "qad")
    with pytest.raises(ConfigError, match=r"retrieval.*0"):
        plan(text)


def test_what_an_encoder_family_cannot_do_is_refused_before_anything_is_made(plan):
    shape = {"family": "deberta-v2"}
    method = {"translation": 0.5}
    table = {
        "text": ["rawtext"],
        "languages": ["qaa"],
        "architecture": shape,
        "method": method,
        "bitext": "tatoeba",
    }
    with says(ModelError, "encoder.pretrain:"):
        plan(encoder={"pretrain": table})


MISTAKES = """
grid.seeds = [] -> grid.seeds:
grid.seeds = [1, 1] -> grid.seeds: … 1
grid.source = "qaa+qaa" -> grid.source: … 'qaa'
grid.targets = ["qab+qab"] -> grid.targets: … 'qab'
grid.targets = [] -> grid.targets:
grid.targets = ["qaa"] -> grid.targets: … ['qaa']
grid.targets = ["q"] -> grid.targets: … 'q'
grid.source = "qaa+q" -> grid.source: … 'q'
grid.source = [] -> grid.source:
grid.corpus = "rawtext" -> grid.corpus: … 'rawtext'
grid.task = "nre" -> grid.task: … 'nre' … 'ner'
grid.task = "upos" -> grid.task: … 'wikiann' … 'upos'
grid.method = [] -> grid.method:
grid.method.0 = {} -> grid.method[0]: name:
grid.method.0.epoch = 1 -> grid.method[0]: epoch:
grid.method.0.epochs = [1, 2] -> grid.method[0]: epochs: … [1, 2]
grid.method.0.label = 3 -> grid.method[0]: label: … 3
grid.method.1.targets = ["qac"] -> grid.method[1]: targets: … 'qac'
grid.method.1.targets = "qab" -> grid.method[1]: targets: … 'qab'
grid.optimization.epoch = 1 -> grid.optimization: epoch:
grid.optimization.epochs = [] -> grid.optimization.epochs:
grid.optimization.patience = -1 -> grid.optimization: patience: … -1 … 0
grid.optimization.epochs = [1, 0] -> grid.optimization: epochs: … 0 … 1
grid.optimization.precision = "half" -> grid.optimization: precision: … 'half' … 'auto' … 'float32' …
    'bfloat16'
grid.optimization.overlap = 126 -> grid.method[0]: overlap: … 128
grid.optimization.limit = 9999 -> grid.method[0]: limit: … 9999
grid.treebanks = { fr = "GSD" } -> grid.treebanks: … 'fr'
grid.treebanks = { qaa = "X" } -> grid: … 'wikiann'
encoder = {} -> encoder:
encoder = [] -> encoder:
encoder = ["shipped", "shipped"] -> encoder: … 'shipped'
encoder = { pretrain = { text = ["rawtxt"], languages = ["qaa", "qab"] } } -> encoder.pretrain.text: …
    'rawtxt'
encoder = { pretrain = { text = ["ud"], languages = ["qaa", "qab"] } } -> encoder.pretrain.text: … 'ud'
encoder = { pretrain = { text = [], languages = ["qaa", "qab"] } } -> encoder.pretrain.text:
encoder = { pretrain = { text = ["rawtext"], languages = ["qaz"] } } -> encoder.pretrain.text: qaz:
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], bitext = "bitext" } } ->
    encoder.pretrain: … 'bitext'
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], method = { name = "mlm" } } } ->
    encoder.pretrain.method: … 'mlm'
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], method = { name = "meta-learning" } }
    } -> encoder.pretrain: meta-learning:
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], modules = { kind = "adapter",
    reduction = 512 } } } -> encoder.pretrain: modules: … 256 … 512
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], method = { step = 3 } } } ->
    encoder.pretrain.method: step: … 'steps'
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], method = { translation = 0.5 } } } ->
    encoder.pretrain: … '' … 0.5
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], architecture = { family = "brt" } } }
    -> encoder.pretrain.architecture.family: … 'brt' … 'bert'
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], architecture = { heads = 7 } } } ->
    encoder.pretrain.architecture: … 7 … 256
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], architecture = { family =
    "modernbert", heads = 256 } } } -> encoder.pretrain: architecture: … 256 … 1
encoder = { pretrain = { text = ["rawtext"], languages = ["qaa", "qab"], architecture = { positions = 64 } } }
    -> encoder.pretrain.method.block: … 128 … 64
encoder = ["shipped", { pretrained = "shipped", label = "x", attention = "both" }] -> encoder[1].attention: …
    'both'
encoder = ["shipped", { label = "x", pretrain = { text = ["rawtxt"], languages = ["qaa", "qab"] } }] ->
    encoder[1].pretrain.text: … 'rawtxt'
measure.0 = { split = "dev" } -> measure[0]: name:
grid.method.0.peft = { rank = 4 } -> grid.method[0]: peft: kind:
measure.0.splt = "dev" -> measure[0]: splt: … 'split'
measure.0.split = "dve" -> measure[0]: split: … 'dve' … 'train' … 'dev' … 'test'
measure.0.split = 3 -> measure[0]: split: … 3 … 'train' … 'dev' … 'test'
measure.0.examples = -1 -> measure[0]: examples: … -1 … 0
measure.0.targets = "qab" -> measure[0]: targets: … 'qab'
measure.0.targets = ["qac"] -> measure[0]: targets: … 'qac'
measure.0.seeds = [9] -> measure[0]: seeds: … '9' … 0 … 1
measure.0.methods = ["bilingal"] -> measure[0]: methods: … 'bilingal'
measure.0.corpus = "bitext" -> measure[0]: … 'bitext'
measure.0.inputs = "translate" -> measure[0]: inputs: … 'translate' … 'translated'
measure.0.inputs = "mixed" -> measure[0]: inputs: … 'mixed'
measure.0.languages = ["English"] -> measure[0]: languages: … 'English'
measure.1.languages = ["qaa", "qab", "qab"] -> measure[1]: languages: … 'qab'
measure.2.methods = ["bilingual"] -> measure[2]: methods:
grid.method = [{ name = ["source-only"] }] -> grid.method[0]: … ['source-only']
grid.method = [{ name = "few-shot" }] -> grid.method[0]:
grid.method = [{ name = "source-only" }, { name = "few-shot", start = "source-onyl" }] -> grid.method[1]:
    start: … 'source-onyl' … 'source-only'
grid.method = [{ name = "bilingual", start = "few-shot" }, { name = "few-shot", start = "bilingual" }] ->
    grid.method[0]: start: … 'bilingual' … 'few-shot'
grid.method = [{ name = "source-only", targets = ["qab"] }, { name = "few-shot", start = "source-only" }] ->
    grid.method[1]: start: … 'source-only' … 'qad'
measure.0.corpus = "wikiann:de" -> measure[0]: … 'wikiann'
measure.0.corpus = "mlqa:" -> measure[0]: … 'mlqa:'
measure.0.corpus = "mlqa:de" -> measure[0]: … 'mlqa:de'
measure.1.methods = ["bilingual"] -> measure[1]:
measure.2.between = ["source-only", "x"] -> measure[2]: between: … 'x'
measure.2.between = ["source-only"] -> measure[2]: interpolation: … 1 … 2
measure.2.between = "source-only" -> measure[2]: between: … 'source-only'
measure.2.part = "hed" -> measure[2]: interpolation: … 'hed' … 'head'
measure = [{ name = "deltas", between = ["source-only"] }] -> measure[0]: deltas: … 1 … 3
measure.2.alphas = [] -> measure[2]: alphas:
measure.2.alphas = [0.5, 0.5] -> measure[2]: alphas: … 0.5
measure.2.between = ["bilingual", "bilingual"] -> measure[2]: between: … 'bilingual'
measure.0.seeds = [1, 1] -> measure[0]: seeds: … 1
measure.0.treebanks = { fr = "GSD" } -> measure[0]: treebanks: … 'fr'
measure = [{ name = "word-distance", corpus = "bitext", distances = ["l2", "l2"] }] -> measure[0]: distances:
    … 'l2'
measure.2.targets = ["qad"] -> measure[2]:
measure = [{ name = "run-variance" }]; grid.seeds = [0] -> measure[0]:
measure = [{ name = "retrieval" }] -> measure[0]:
measure = [{ name = "retrieval", corpus = "bitext", layers = [1, 9] }] -> measure[0]: layers: … 9 … 4
grid.method = [{ name = "source-only", auxiliary = { name = "alignment-loss", bitext = "bitext", layer = -9 }
    }] -> grid.method[0]: auxiliary: layer: … -9 … 4
adjust = [{ name = "cross-lingual-adjustment", bitext = "bitext", pairs = ["qaa-qab"], layer = 9 }] ->
    adjust[0]: layer: … 9 … 4
grid.peft = { kind = "layer-freezing", layers = 5 } -> grid.method[0]: peft: layers: … 5 … 4
align = { name = "encoder", layer = 9 }; adjust = [{ name = "cross-lingual-adjustment", bitext = "bitext",
    pairs = ["qaa-qab"] }] -> adjust[0]: align: layer: … 9 … 4
align = { name = "encoder", layer = 9 }; translate = { name = "built-in", answers = ["alignment"] };
    grid.corpus = "squad"; grid.method = [{ name = "translate-train" }]; measure = [] -> grid.method[0]:
    align: layer: … 9 … 4
measure = [{ name = "retrieval", corpus = "ud" }] -> measure[0]: corpus: … 'ud'
measure = [{ name = "retrieval", corpus = "bitxt" }] -> measure[0]: corpus: … 'bitxt'
"""
"""Changes of the tiny recipe, with the place and the facts of their messages (separated by "…").

Indented lines continue the previous line.
"""


@pytest.mark.parametrize("line", lines(MISTAKES))
def test_a_mistake_is_found_before_anything_is_made(get_refusal, line):
    changes, part = line.split(" -> ")
    place, *facts = part.split(" … ")
    message = get_refusal(**dict(parse_change(element) for element in changes.split("; ")))
    assert message.startswith(f"tiny.toml: {place}")
    assert [fact for fact in facts if fact not in message] == []


def test_patience_needs_a_dev_set_that_chooses(plan, get_refusal, monkeypatch):
    ids, patient = (
        {identity(entry) for entry in plan(grid__optimization__patience=count)} for count in (0, 2)
    )
    assert ids == {identity(entry) for entry in plan()}
    assert not ids & patient
    monkeypatch.setattr(SourceOnly, "reads", lambda _, source, __: Reads(train=source))
    assert plan()
    message = get_refusal(grid__optimization__patience=2)
    check_wording(message, "tiny.toml: grid.method[0]: patience:", "source-only")


def test_a_recipe_that_asks_for_nothing_is_refused(plan):
    with pytest.raises(ConfigError, match=r"recipe.*nothing"):
        plan('title = "t"')
    with pytest.raises(ConfigError, match=r"\[grid\]"):
        plan('title = "t"\n[[measure]]\nname = "scores"')


def test_two_encoders_must_not_go_by_one_name(plan, bert_folder, tmp_path):
    (tmp_path / "b").mkdir()
    twin = shutil.copytree(bert_folder, tmp_path / "b" / "bert")
    with says(ConfigError, "encoder:", "'bert'"):
        plan(encoder=[str(bert_folder), str(twin)])


def test_a_folder_that_is_not_there_is_no_hub_name(plan, tmp_path):
    for source in (f"{tmp_path}/lost", "./lost", "~/lost", "two words", "{}", "~no user/x", "x" * 300):
        with pytest.raises(ModelError, match="folder"):
            plan(encoder=source)


def test_runs_of_a_hub_encoder_are_its_commits(plan, hub_cache, bert_folder, distilbert_folder):
    commits = [hub_cache("some/bert", bert_folder), hub_cache("some/bert", distilbert_folder, revision="v2")]
    ids = []
    for name, commit in zip(("some/bert", "some/bert@v2"), commits, strict=True):
        runs = models(plan(encoder=name))
        assert {(run.encoder.source, run.encoder.revision) for run in runs} == {(name, commit)}
        ids.append({identity(run) for run in runs})
    assert not ids[0] & ids[1]


def test_an_updated_hub_encoder_makes_other_runs(plan, hub_cache, bert_folder, distilbert_folder):
    hub_cache("some/bert", bert_folder)
    identities_before = {identity(run) for run in models(plan(encoder="some/bert"))}
    hub_cache("some/bert", distilbert_folder)
    identities_after = {identity(run) for run in models(plan(encoder="some/bert"))}
    assert len(identities_before) == len(identities_after) == MODELS
    assert not identities_before & identities_after


def test_two_revisions_of_one_encoder_stand_in_one_recipe(plan, hub_cache, bert_folder):
    hub_cache("some/bert", bert_folder, revision="step-20")
    hub_cache("some/bert", bert_folder, revision="step-40")
    runs = models(plan(encoder=["some/bert@step-20", "some/bert@step-40"]))
    assert {run.encoder.label for run in runs} == {"bert@step-20", "bert@step-40"}


def test_a_hub_encoder_of_an_unsupported_family_is_refused_in_the_plan(plan, hub_cache, tmp_path):
    (tmp_path / "gpt2").mkdir()
    (tmp_path / "gpt2" / "config.json").write_text('{"model_type": "gpt2"}')
    hub_cache("openai/gpt2", tmp_path / "gpt2")
    with says(ModelError, "encoder:", "'gpt2'"):
        plan(encoder="openai/gpt2")


def test_a_hub_encoder_that_cannot_be_looked_at_is_planned_without_its_commit(plan, hub_cache):
    runs = plan(encoder="somebody/small-bert")
    assert unresolved_models(runs) == ["somebody/small-bert"]


def test_no_more_processes_are_asked_for_than_the_plan_has_use_for(plan, monkeypatch):
    from isogloss.engine import engine

    monkeypatch.setattr(engine, "cores", lambda: 64)
    chain = {"grid__seeds": [0], "grid__method": [{"name": "source-only"}], "measure": [{"name": "scores"}]}
    assert engine.default_jobs(plan(**chain)) == 1
    assert engine.default_jobs(plan()) == MODELS + 2  # scores of the models, and two paths
    assert engine.default_jobs(plan(), threads=32) == 2
    assert engine.default_jobs([]) == 1


def test_no_password_of_a_url_is_written_into_a_plan(plan_changed):
    result = plan_changed(title='"of https://me:s3cr3t@host"')
    result.write("isogloss run --data https://me:s3cr3t@host/data?token=s3cr3t")
    text = (result.store.root / "plan.json").read_text()
    assert "s3cr3t" not in text
    assert "isogloss run --data https://***@host/data?token=***" in text
