"""Predictions with ONNX files equal torch's, need no torch, and are never made from other weights."""

import json
import os
import shutil

import numpy as np
import pytest
import torch

from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.publishing.file_tokenizers import read_tokenizer
from isogloss.features.publishing.onnx import write_int8, write_onnx
from isogloss.features.publishing.onnx_model import GPUS, ONNX_FILES, find_onnx_model, load_onnx_model
from isogloss.tasks.batch import to_array
from isogloss.using import Model, export, load_model
from isogloss.using.provenance import Provenance
from light import MAIN, run_forks
from task_examples import SMALL_TASKS, examples_of, perfect

FAMILIES = (
    *("bert", "distilbert", "xlm_roberta", "deberta_v2", "modernbert", "rembert", "xlm_roberta_xl", "xmod"),
    *("eurobert", "llama", "qwen3", "gemma3_text", "m2m_100", "mt5"),
)
TASKS = tuple(name for name in SMALL_TASKS if name != "parsing")
HEADS = ("upos", "nli", "qa", "multiple-choice")
"""A task of each head that is written."""

LEAST_CORRELATION = 0.9
"""Correlation of the scores of random heads before and after rounding: mistaken weights have none."""

TOLERANCE = 1e-4
"""Largest difference between raw scores of ONNX Runtime and torch in float32."""


def make_random(name, encoder, limit=32):
    """Return a model of a task with a random head."""
    task = SMALL_TASKS[name]
    provenance = Provenance(
        run="0123456789ab",
        title="made up",
        task=name,
        corpus="ud",
        method="source-only",
        encoder="tiny",
        source=("qaa",),
        target=(),
        limit=limit,
        overlap=8,
        versions={"isogloss": "0.1.0"},
    )
    network = task.head(encoder, seed=0)
    return Model(network, load_tokenizer(encoder), task, provenance, precision="float32")


def inputs_of(name):
    """Return examples of a task, short ones and ones that are longer than a row."""
    return [*examples_of(name), *examples_of(name, size=40)]


def check_equal(folder, name):
    """Check that both engines encode, score and answer alike."""
    by_torch = load_model(folder, precision="float32")
    by_onnx = load_onnx_model(folder)
    examples = inputs_of(name)
    torch_inputs = by_torch.prepare(examples)
    onnx_inputs = by_onnx.prepare(examples)
    assert onnx_inputs.rows == torch_inputs.rows
    for ours, theirs in zip(by_onnx.scores_of(onnx_inputs), by_torch.scores_of(torch_inputs), strict=True):
        of_options = theirs.numpy()[:, : ours.shape[1]]  # Torch pads the options of a choice.
        assert ours == pytest.approx(of_options, abs=TOLERANCE)
    answers = by_onnx.answers_of(onnx_inputs)
    expected = by_torch.answers_of(torch_inputs)
    if SMALL_TASKS[name].metric == "spearman":
        assert answers == pytest.approx(expected, abs=TOLERANCE)
    else:
        assert answers == expected


def check_exported(name, family, folder, out):
    """Check a model's export, or that its head cannot be written."""
    model = make_random(name, folder)
    is_refused = not model.kind.auto_class or family == "xmod"
    if is_refused:
        with pytest.raises(ConfigError, match="--onnx"):
            export(model, out, onnx=True)
        return
    check_equal(export(model, out, onnx=True), name)
    check_rounded(load_model(out), out, name)


def check_rounded(model, folder, name):
    """Check that scores of the file rounded to int8 are nearly those of the exact file."""
    files = (load_onnx_model(folder), write_int8(model, folder))
    scores = [
        np.concatenate([row.ravel() for row in file.scores_of(file.prepare(inputs_of(name)))])
        for file in files
    ]
    finite = np.isfinite(scores[0])
    assert np.corrcoef([part[finite] for part in scores])[0, 1] > LEAST_CORRELATION


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_every_head_is_rounded_to_int8(name, bert_folder, tmp_path):
    check_exported(name, "bert", bert_folder, tmp_path / "out")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", HEADS)
def test_every_family_predicts_alike_with_both_engines(name, family, request, tmp_path):
    check_exported(name, family, request.getfixturevalue(f"{family}_folder"), tmp_path / "out")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TASKS if name not in HEADS])
def test_every_task_predicts_alike_with_both_engines(name, bert_folder, tmp_path):
    check_exported(name, "bert", bert_folder, tmp_path / "out")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tokenizer_read_from_its_file_makes_the_same_rows(family, request, tmp_path):
    model = make_random("nli", request.getfixturevalue(f"{family}_folder"))
    folder = export(model, tmp_path / "out")
    again = load_model(folder).tokenizer
    read = read_tokenizer(folder)
    read.isogloss_causal = again.isogloss_causal  # Which an ONNX file contains.
    for name in ("upos", "nli", "text-classification", "qa", "multiple-choice"):
        task = SMALL_TASKS[name]
        examples = inputs_of(name)
        for limit, overlap in ((384, 64), (26, 8)):
            expected = task.encode(examples, again, limit=limit, overlap=overlap)
            assert task.encode(examples, read, limit=limit, overlap=overlap) == expected


@pytest.mark.parametrize("name", TASKS)
def test_arrays_of_scores_decode_as_tensors_do(name, bert_folder):
    task = SMALL_TASKS[name]
    examples = inputs_of(name)
    rows = task.encode(examples, load_tokenizer(bert_folder), limit=40, overlap=8)
    draw = torch.Generator().manual_seed(1)
    scores = [torch.randn(row.shape, generator=draw) for row in perfect(task, rows, examples)]
    assert task.decode(examples, rows, [to_array(row) for row in scores]) == task.decode(
        examples, rows, scores
    )


@pytest.fixture(scope="module")
def exported_folder(bert_folder, tmp_path_factory):
    """Return the folder of a tagger with both ONNX files."""
    out = tmp_path_factory.mktemp("exported") / "out"
    return export(make_random("upos", bert_folder), out, onnx=True, int8=True)


@pytest.fixture
def folder(exported_folder, tmp_path):
    """Return a copy of the tagger's folder."""
    return shutil.copytree(exported_folder, tmp_path / "copy")


def find_onnx(folder, **options):
    """Return the model found with an ONNX file, if any, and what was said."""
    messages = []
    model = find_onnx_model([folder], **{"onnx": None, "int8": False, **options}, say=messages.append)
    return model, messages


@pytest.mark.slow
@pytest.mark.skipif(any(path.exists() for path in GPUS), reason="a GPU predicts with torch")
def test_the_file_in_the_folder_is_used_unless_it_is_refused(folder):
    model, (message,) = find_onnx(folder)
    assert (model.precision, str(folder / "model.onnx") in message) == ("float32", True)
    model, (message,) = find_onnx(folder, int8=True)
    assert (model.precision, str(folder / "model.int8.onnx") in message) == ("int8", True)
    assert find_onnx(folder, onnx=False) == (None, [])
    with pytest.raises(ConfigError, match="--int8 and --no-onnx"):
        find_onnx(folder, onnx=False, int8=True)
    (folder / "model.int8.onnx").unlink()
    with pytest.raises(ConfigError, match=r"--int8: .*copy has no model\.int8\.onnx"):
        find_onnx(folder, int8=True)
    (folder / "model.onnx").unlink()
    assert find_onnx(folder) == (None, [])
    with pytest.raises(ConfigError, match=r"--onnx: .*copy has no model\.onnx"):
        find_onnx(folder, onnx=True)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["a weight", "another file", "no checksum", "half a file", "another name"])
def test_a_file_from_other_weights_is_never_used(folder, bert_folder, change):
    weights = folder / "model.safetensors"
    old_status = weights.stat()
    onnx_file = folder / "model.onnx"
    content = bytearray(weights.read_bytes())
    if change == "a weight":
        content[-1] ^= 1
        weights.write_bytes(content)
        os.utime(weights, ns=(old_status.st_atime_ns, old_status.st_mtime_ns))
        assert weights.stat().st_size == old_status.st_size
        assert weights.stat().st_mtime_ns == old_status.st_mtime_ns
    elif change == "another file":
        (folder / "task_adapter.safetensors").write_bytes(content)
    elif change == "another name":
        weights.rename(folder / "renamed.safetensors")
    elif change == "half a file":
        onnx_file.write_bytes(onnx_file.read_bytes()[: onnx_file.stat().st_size // 2])
    else:
        import onnx

        model = onnx.load(onnx_file)
        onnx.helper.set_model_props(model, {})
        onnx.save(model, onnx_file)
    model, (message,) = find_onnx(folder, onnx=True)
    assert model is None
    assert str(onnx_file) in message
    assert "torch" in message
    with pytest.raises(ModelError):
        load_onnx_model(folder)


@pytest.mark.slow
def test_folders_of_runs_ensembles_and_parts_outside_the_file_use_torch(folder):
    with pytest.raises(ConfigError, match="several models"):
        find_onnx_model([folder, folder], onnx=True, int8=False, say=print)
    for name in ("mixup.json", "language_maps.safetensors", "record.json"):
        (folder / name).touch()
        assert find_onnx(folder) == (None, [])
        (folder / name).unlink()


@pytest.mark.slow
def test_predicting_with_the_file_loads_no_torch(folder, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat happened\nAnna saw slowly casings\n")
    words = ["predict", folder, text]
    by_onnx, int8_process, by_torch, quiet = run_forks(
        "",
        (MAIN, [*words, "--onnx"]),
        (MAIN, [*words, "--int8", "--scores"]),
        (MAIN, [*words, "--no-onnx"]),
        (MAIN, [*words, "--onnx", "--quiet"]),
    )
    assert by_onnx.returncode == int8_process.returncode == by_torch.returncode == 0, int8_process.stderr
    assert not {"torch", "transformers", "pandas", "scipy"} & (by_onnx.modules | int8_process.modules)
    assert "torch" in by_torch.modules
    assert by_onnx.stdout == by_torch.stdout == quiet.stdout
    assert "model.onnx" in by_onnx.stderr
    assert "model.int8.onnx" in int8_process.stderr
    assert "onnx" not in by_torch.stderr + quiet.stderr
    assert len(int8_process.stdout.splitlines()) == 2


@pytest.mark.slow
def test_scores_with_the_file_equal_torchs(folder):
    words = ["evaluate", folder, "--corpus", "ud", "--language", "qaa", "--split", "dev", "--json"]
    by_onnx, by_torch = run_forks("", (MAIN, [*words, "--onnx"]), (MAIN, [*words, "--no-onnx"]))
    assert "model.onnx" in by_onnx.stderr
    ours, theirs = (json.loads(process.stdout) for process in (by_onnx, by_torch))
    assert ours == pytest.approx(theirs, abs=0.01)  # Torch may round to bfloat16.
    float_row, int8_row = json.loads((folder / "onnx.json").read_text())
    assert float_row["score"] == ours["score"]
    assert int8_row["file"] == "model.int8.onnx"
    assert f"{int8_row['score']:.4f}" in (folder / "README.md").read_text()


@pytest.mark.nightly
@pytest.mark.slow
def test_weights_over_the_limit_are_in_a_separate_file(folder, bert_folder):
    model = make_random("upos", bert_folder)
    examples = inputs_of("upos")
    expected = load_onnx_model(folder)
    for name in ONNX_FILES.values():
        (folder / name).rename(folder / f"whole.{name}")
    for file_name, write in (("model.onnx", write_onnx), ("model.int8.onnx", write_int8)):
        onnx_model = write(model, folder, largest_file=1000)
        assert (folder / f"{file_name}.data").stat().st_size > 1000
        assert (folder / file_name).stat().st_size < (folder / f"whole.{file_name}").stat().st_size
        if write is write_onnx:
            pairs = zip(
                onnx_model.scores_of(onnx_model.prepare(examples)),
                expected.scores_of(expected.prepare(examples)),
                strict=True,
            )
            assert all(np.allclose(ours, theirs, atol=TOLERANCE) for ours, theirs in pairs)


def test_int8_needs_a_corpus_whose_dev_split_it_is_scored_on(bert_folder, tmp_path):
    model = make_random("upos", bert_folder)
    with pytest.raises(ConfigError, match="--int8 needs --onnx"):
        export(model, tmp_path / "out", int8=True)
    unknown_model = Model(
        model.network, model.tokenizer, model.task, Provenance(**{**vars(model.provenance), "source": ()})
    )
    pytest.importorskip("onnxscript")
    with pytest.raises(ConfigError, match=r"--int8: .*corpus"):
        export(unknown_model, tmp_path / "out", onnx=True, int8=True)
    assert not (tmp_path / "out").exists()
