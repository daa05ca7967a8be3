"""Every door for foreign files, from the tables of the readers: a new reader is a new door.

A door is a folder of small valid files and a function that reads the folder after one file was mutated.
"""

import io
import json
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import torch

from isogloss.core.checksums import Checksum, as_text, from_text
from isogloss.core.errors import DataError, StorageError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.files import DiskFolder, disk_file
from isogloss.data.formats.corpus_kinds import KINDS, list_columns

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "data")]

from annotated_files import JSON_TOOLS, body_of  # noqa: E402

Files = Mapping[str, bytes]
Variants = tuple[tuple[Files, str, Callable[[Path], object]], ...]


@dataclass(frozen=True)
class Door:
    """Files, the name of the mutated one, and a reader. Mutations take variants in turn."""

    name: str
    known: Variants | Callable[[], Variants]
    """The variants, or a function that finds them on first use."""
    binary: bool = False
    cost: float = 1.0
    """Mutations of a plain reader that take as long: slow doors get fewer in CI."""
    writes: str = ""
    """The folder below that it may write into."""
    sets_aside: bool = False
    """Whether what is damaged counts as missing, so that nothing is refused."""

    @cached_property
    def variants(self) -> Variants:
        return self.known() if callable(self.known) else self.known


def corpora() -> Iterator[Door]:
    """Yield each corpus of the catalogue, with the files of the fixtures and those that it writes."""
    from test_fuzz import cases

    def read(case: object, folder: Path) -> object:
        return list(case.corpus.read(DiskFolder(folder), case.language, case.split))  # type: ignore[attr-defined]

    def variants(name: str) -> Variants:
        of_corpus = [case for case in cases() if case.corpus.name == name]
        return tuple((case.files, case.damaged, partial(read, case)) for case in of_corpus)

    for name in CORPORA:
        yield Door(f"corpus {name}", partial(variants, name), cost=4.0)


ROWS: Mapping[str, list[dict[str, object]]] = {
    "tagging": [
        {"words": ["Anna", "in", "Oslo"], "labels": ["B-PER", "O", "B-LOC"]},
        {"words": ["#"], "labels": ["O"]},
    ],
    "text": [{"text": "a b, c", "label": "x"}, {"text": 'd "e"', "label": "y"}, {"text": "f", "label": "x"}],
    "pair": [{"first": "a b", "second": "c", "label": "x"}, {"first": "d", "second": "e", "label": "y"}],
    "choice": [
        {"context": "a", "options": ["b", "c"], "label": 1},
        {"context": "d", "options": ["e", "f"], "label": 0},
    ],
    "span": [{"context": "a b c", "question": "d?", "answers": {"text": ["b"], "answer_start": [2]}}],
    "bitext": [{"first": "a b", "second": "c"}, {"first": "d", "second": "e"}],
    "raw": [{"text": "a b"}, {"text": "c"}],
}
TABLE = "text\tfirst\tsecond\na\tb\tc\n"
LISTS = {"words": ["a"], "options": ["a", "b"], "context": "b"}
TREE = (
    "# sent_id = 1\n1\tAnna\tAnna\tPROPN\t_\t_\t0\troot\t_\t_\n2\tleft\tleave\tVERB\t_\t_\t1\tdep\t_\t_\n\n"
)


WEBANNO = (
    "#FORMAT=WebAnno TSV 3.3\n#T_SP=custom.Span|value\n\n\n#Text=Anna in Oslo\n"
    "1-1\t0-4\tAnna\tPER\t\n1-2\t5-7\tin\t_\t\n1-3\t8-12\tOslo\tLOC\t\n"
)
BRAT = {"test.ann": b"T1\tPER 0 4\tAnna\nT2\tLOC 8 12\tOslo\n", "test.txt": b"Anna in Oslo\n"}
OFFSETS = {"text": "Anna in Oslo", "entities": [[0, 4, "PER"], [8, 12, "LOC"]]}
TASK = {
    "data": {"text": "Anna"},
    "annotations": [{"result": [{"type": "labels", "value": {"start": 0, "end": 4, "labels": ["PER"]}}]}],
}


def content(kind: str, form: str) -> bytes:
    """Return a small file of a kind of corpus in a format."""
    rows = ROWS[kind]
    if form == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if form == "json":
        return json.dumps(rows).encode()
    if form == "parquet":
        return _parquet(rows)
    if form == "conll":
        return b"# id = 1\nAnna\tB-PER\nin\tO\nOslo\tB-LOC\n\n# id = 2\n#\tO\n"
    if form == "conllu":
        return TREE.encode()
    if form == "squad":
        qa = {"id": "1", "question": "d?", "answers": [{"text": "b", "answer_start": 2}]}
        return json.dumps({"data": [{"paragraphs": [{"context": "a b c", "qas": [qa]}]}]}).encode()
    if form == "webanno":
        return WEBANNO.encode()
    if form == "lines":
        return b"a b\nc d\n"
    if any(not isinstance(value, str) for row in rows for value in row.values()):
        values_by_field = {"words": "a b", "labels": "x", "options": "b", "answers": "b"}
        rows = [{name: values_by_field.get(name, value) for name, value in row.items()} for row in rows]
    separator = "\t" if form == "tsv" else ","
    cells = [list(rows[0]), *(list(map(str, row.values())) for row in rows)]
    return "".join(
        separator.join(f'"{cell}"' if "," in cell else cell for cell in row) + "\n" for row in cells
    ).encode()


def _parquet(rows: list[dict[str, object]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def descriptions() -> Iterator[Door]:
    """Yield each kind of described corpus in each of its formats, and the description itself."""
    from isogloss.features.described_corpora.contents import inspect_splits
    from isogloss.features.described_corpora.descriptions import describe_corpus

    def read(folder: Path) -> object:
        for split in inspect_splits(describe_corpus(folder / "own.toml")):
            for error in split.errors:
                raise DataError(error)

    for kind, form in ((name, form) for name in KINDS for form in list_columns(name)):
        language = "en-sw" if kind == "bitext" else "sw"
        files = {"test.dat": content(kind, form)}
        body = f'kind = "{kind}"\nformat = "{form}"\n'
        places = f'files = {{ test = "test.dat" }}\nlanguages = ["{language}"]\n'
        if kind == "bitext" and form == "lines":
            places = 'files = { test = "test.{language}" }\nlanguages = ["en", "sw"]\n'
            files = {"test.en": b"a b\nc\n", "test.sw": b"d\ne\n"}
        if form == "brat":
            places = f'files = {{ test = "test.ann" }}\nlanguages = ["{language}"]\n'
            files = dict(BRAT)
        files["own.toml"] = (body + places).encode()
        data = next(iter(files))
        yield Door(f"description {kind} {form}", ((files, data, read),), binary=form == "parquet", cost=5.0)
        if form == "jsonl":
            yield Door(f"description {kind} itself", ((files, "own.toml", read),), cost=5.0)
    yield from _annotations(read)
    languages = 'languages = ["sw"]\n'
    parallel = f'kind = "text"\nfiles = {{ test = "a.txt" }}\nlabel_files = {{ test = "b.txt" }}\n{languages}'
    files = {"a.txt": b"a b\nc d\n", "b.txt": b"x\ny\n", "own.toml": parallel.encode()}
    for data in files:
        yield Door(f"description labels in lines {data}", ((files, data, read),), cost=5.0)
    table = 'kind = "tagging"\nfiles = { test = "test.csv" }\n'
    columns = 'columns = { sentence = "s", word = "w", label = "t" }\n'
    files = {"test.csv": b"s,w,t\n1,Anna,B-PER\n,in,O\n2,Oslo,B-LOC\n"}
    files["own.toml"] = (table + columns + languages).encode()
    yield Door("description lines of words", ((files, "test.csv", read),), cost=5.0)


def _annotations(read: Callable[[Path], object]) -> Iterator[Door]:
    """Yield what each annotation tool writes as JSON."""
    text = "Anna in Oslo"
    for tool in JSON_TOOLS:
        body = body_of((text, [(0, 4, "PER"), (8, 12, "LOC")]), tool)
        form = "json" if tool == "label-studio" else "jsonl"
        description = f'kind = "tagging"\nformat = "{form}"\nannotated = "offsets"\n'
        files = {
            "test.dat": json.dumps([body] if form == "json" else body).encode(),
            "own.toml": f'{description}files = {{ test = "test.dat" }}\nlanguages = ["sw"]\n'.encode(),
        }
        yield Door(f"description of spans by {tool}", ((files, "test.dat", read),), cost=5.0)


def predictions() -> Iterator[Door]:
    """Yield each format of inputs to ``predict`` of each task."""
    from isogloss.tasks import TASKS, find_task
    from isogloss.using.formats import format_of, list_formats
    from isogloss.using.kinds import kind_of

    samples = {
        "conllu": TREE, "lines": "a b\nc\n", "columns": "a O\nb O\n\n", "tsv": TABLE,
        "csv": "text,first,second\na,b,c\n",
        "jsonl": json.dumps({"text": "a", "first": "a", "second": "b", "question": "a"} | LISTS),
        "squad": content("span", "squad").decode(),
        "webanno": WEBANNO, "brat": BRAT["test.ann"].decode(), "offsets": f"{json.dumps(OFFSETS)}\n",
        "tasks": json.dumps([TASK]),
    }  # fmt: skip

    def read(kind: object, task: str, form: str, folder: Path) -> object:
        reader, file = format_of(disk_file(folder / "in.dat"), kind, task, form)  # type: ignore[arg-type]
        return list(reader.read(file, "en"))

    seen_formats = set[tuple[str, ...]]()
    for task in TASKS:
        kind = kind_of(find_task(task, ("x", "y")))
        formats = list_formats(kind)
        for form in formats:
            key = (form.name, *(file_format.name for file_format in formats))
            if key not in seen_formats:
                files = {"in.dat": samples.get(form.name, "a\tb\n").encode()}
                if form.name == "brat":
                    files["in.txt"] = BRAT["test.txt"]
                variant = (files, "in.dat", partial(read, kind, task, form.name))
                yield Door(f"predict {task} {form.name}", (variant,))
            seen_formats.add(key)


def outputs() -> Iterator[Door]:
    """Yield what other tools write of answers, compared with each other."""
    from isogloss.features.comparing.compared_outputs import compare_outputs

    def compare(folder: Path) -> object:
        return compare_outputs([disk_file(folder / "a.jsonl")], disk_file(folder / "b.jsonl"))

    labels = [{"id": str(n), "label": "x" if n % 2 else "y", "gold": "x"} for n in range(6)]
    words = [{"id": str(n), "labels": ["O", "B-X"], "gold": ["O", "O"]} for n in range(6)]
    samples = [
        {"evaluation_id": "e", "evaluation_name": "sib", "sample_id": str(n), "input": {"raw": "q"},
         "evaluation_result_id": "e#f1", "evaluation": {"score": 0.5}, "metadata": {"language": "sw"}}
        for n in range(6)
    ]  # fmt: skip
    for name, rows in (("labels", labels), ("words", words), ("samples", samples)):
        file = "".join(json.dumps(row) + "\n" for row in rows).encode()
        yield Door(
            f"outputs of {name}", (({"a.jsonl": file, "b.jsonl": file}, "a.jsonl", compare),), cost=3.0
        )

    def compare_logs(folder: Path) -> object:
        return compare_outputs([disk_file(folder / "a.json")], disk_file(folder / "b.json"))

    inspect_samples = [
        {"id": n, "input": "q", "target": "x", "scores": {"m": {"value": "C"}}} for n in range(6)
    ]
    log = json.dumps({"samples": inspect_samples}).encode()
    yield Door("logs of Inspect", (({"a.json": log, "b.json": log}, "a.json", compare_logs),), cost=3.0)


def archives() -> Iterator[Door]:
    """Yield archives, unpacked into a folder below."""
    from isogloss.features.fetching.unpacking import unpack

    def tar(mode: str) -> bytes:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
            info = tarfile.TarInfo("d/a.txt")
            info.size = 3
            archive.addfile(info, io.BytesIO(b"a b"))
        return file.getvalue()

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("d/a.txt", "a b")

    def take(name: str, folder: Path) -> object:
        def targets(member: str) -> list[tuple[int, str]]:
            return [(0, f"corpus/{member}")]

        return unpack(folder / name, targets, folder / "out", patterns={})

    for name, body in (("x.zip", buffer.getvalue()), ("x.tar", tar("w")), ("x.tar.gz", tar("w:gz"))):
        variant = ({name: body}, name, partial(take, name))
        yield Door(f"archive {name}", (variant,), binary=True, writes="out", cost=2.0)


def recipes() -> Iterator[Door]:
    """Yield a recipe, planned."""
    from isogloss.planning.plan import plan_recipe

    recipe = (TESTS.parent / "src/isogloss/recipes/packaged/quickstart.toml").read_bytes()

    def plan_folder(folder: Path) -> object:
        return plan_recipe(str(folder / "r.toml"), out=folder / "runs")

    yield Door("recipe", (({"r.toml": recipe}, "r.toml", plan_folder),), cost=100.0)


@cache
def study() -> Files:
    """Return the files of a small finished study."""
    with zipfile.ZipFile(TESTS / "reports" / "studies" / "transfer.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def studies() -> Iterator[Door]:
    """Yield each of the files of a finished study that reports read."""
    import isogloss

    files = study()
    runs = {
        name.rpartition("/")[0] for name in islice(sorted(n for n in files if n.endswith("record.json")), 12)
    }
    files = {
        name: body
        for name, body in files.items()
        if name.rpartition("/")[0] in (*runs, "") or "/" not in name
    }

    def read(folder: Path) -> object:
        study = isogloss.read(folder)
        return [study.frame(kind) for kind in ("scores", "epochs", "transfer-gap")]

    for run in runs:
        sums = {"record.json": Checksum.of(files[f"{run}/record.json"])}
        files[f"{run}/checksums.json"] = as_text(sums).encode()
        files[f"{run}/made.json"] = b'{"seconds": 1.5, "versions": {"isogloss": "0.1.0"}}'
    kinds = sorted({name.rpartition("/")[2] for name in files})
    for kind in kinds:
        of_kind = [name for name in files if name.rpartition("/")[2] == kind][:6]
        yield Door(f"study {kind}", tuple((files, name, read) for name in of_kind), cost=150.0)


def manifests() -> Iterator[Door]:
    """Yield lists of files with their checksums."""

    def read(folder: Path) -> object:
        try:
            return from_text((folder / "files.json").read_bytes(), folder / "files.json")
        except ValueError as error:  # What its callers make of a damaged one.
            raise StorageError(f"{folder / 'files.json'}: {error}") from error

    sums = {
        name: {"size": 3, "crc32": "0a0b0c0d"}
        for name in ("0123456789ab/record.json", "0123456789ab/model/x")
    }
    yield Door("manifest", (({"files.json": json.dumps(sums).encode()}, "files.json", read),))


def gains() -> Iterator[Door]:
    """Yield a file of measured gains."""
    from isogloss.features.advising.evidence import read_gains

    lines = [
        "task,encoder,option,language,gain,seeds,labels,hours,needs",
        'upos,gemma,"annotate, 20",sw,37.8,3,20,0.08,"labels, 20"',
        "upos,gemma,zero head,yo,22.6,3,0,0.07,",
    ]
    files = {"gains.csv": "\n".join(lines).encode()}
    yield Door("gains", ((files, "gains.csv", lambda folder: read_gains(folder / "gains.csv")),))


def leases() -> Iterator[Door]:
    """Yield a lease of a process of this machine, and a lease of a second machine."""
    from isogloss.core.processes import host, this_process
    from isogloss.store.leases import FolderBoard, Leases

    def read(folder: Path) -> object:
        leases = Leases(FolderBoard(folder / ".claims"))
        with leases.lease_run("run"):
            return leases.history("run"), leases.holder("run")

    for name, process in (("lease", this_process()), ("lease of an ended process", f"{host()}-4194305-1")):
        body = {"process": process, "machine": "x", "pid": 7, "token": "0", "beat": 3, "held": True}
        files = {".claims/run.1": json.dumps(body).encode()}
        yield Door(name, ((files, ".claims/run.1", read),), writes=".claims", sets_aside=True, cost=5.0)


def names() -> Iterator[Door]:
    """Yield names of files given by others, for processes, members and temporary files."""
    from isogloss.core.atomic_files import sweep_folder
    from isogloss.core.processes import has_ended, host
    from isogloss.core.untrusted import join_safely

    def read(folder: Path) -> object:
        for name in (folder / "names.txt").read_bytes().decode(errors="surrogateescape").split("\n"):
            has_ended(name.removeprefix(".x.").removesuffix(".tmp"))
            path = join_safely(folder / "inside", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return sweep_folder(folder / "inside")

    name_list = f".x.{host()}-12-34.tmp\na/b.json\n.x.another-1-2.tmp\nx.tsv"
    files = {"names.txt": name_list.encode()}
    yield Door("names of files", ((files, "names.txt", read),), writes="inside")


def requests() -> Iterator[Door]:
    """Yield bodies of requests to the explorer."""
    if find_spec("starlette") is None:
        return
    sys.path.insert(0, str(TESTS / "features/explorer"))
    from test_explorer_bodies import send_body

    def ask(folder: Path) -> object:
        status, answer = send_body("answer", (folder / "body.json").read_bytes())
        if status == 400:
            raise DataError(f"{folder / 'body.json'}: {answer.decode()[:300]}")
        assert status == 200, answer
        return answer

    body = json.dumps({"route": "r", "point": [0.25, 1e-3], "text": ["a", "b"], "language": "qaa"}).encode()
    yield Door("request to the explorer", (({"body.json": body}, "body.json", ask),), cost=10.0)


def translations() -> Iterator[Door]:
    """Yield stored translations, which are computed again if they are damaged."""
    from isogloss.data.projection.example_texts import Translated
    from isogloss.features.built_in_languages.translator import BuiltIn
    from isogloss.features.translation.pieces import translate_in_chunks
    from isogloss.translators.setting import TranslateSetting

    def load(texts: list[str]) -> list[Translated]:
        return [Translated(text, 0) for text in texts]

    def translate(folder: Path) -> object:
        setting = TranslateSetting(source="qaa", target="qab", folder=folder / "work", precision="float32")
        translated_texts = translate_in_chunks(["a", "b"], setting, BuiltIn(), lambda: load)
        return [(translation.text.encode(), translation.cuts + 1) for translation in translated_texts]

    def list_stored() -> Variants:
        with tempfile.TemporaryDirectory() as folder:
            translate(Path(folder))
            (path,) = Path(folder, "work").iterdir()
            return (({f"work/{path.name}": path.read_bytes()}, f"work/{path.name}", translate),)

    yield Door("stored translations", list_stored, writes="work", sets_aside=True, cost=5.0)


def models() -> Iterator[Door]:
    """Yield the files of a model folder."""
    from isogloss.encoders.folders import shipped_folder
    from isogloss.encoders.loading import load_model
    from isogloss.encoders.tokenizers import load_tokenizer

    model_files = {path.name: path.read_bytes() for path in shipped_folder().iterdir() if path.is_file()}

    def read(folder: Path) -> object:
        return load_tokenizer(str(folder)), load_model(folder)

    for name in model_files:
        binary = name.endswith(".safetensors")
        yield Door(f"model {name}", ((model_files, name, read),), binary=binary, cost=300.0)


def adapters() -> Iterator[Door]:
    """Yield the files of adapters of AdapterHub, including pickles, and of peft."""
    from safetensors.torch import save

    from isogloss.encoders.loading import load_model
    from isogloss.features.peft.peft_adapters import apply_adapters
    from isogloss.features.publishing.adapterhub import read_hub_adapter, with_hub_adapters

    adapter_folder = TESTS / "features" / "publishing" / "adapterhub" / "bert"
    base = str(adapter_folder / "base")

    def attach(name: str, folder: Path) -> object:
        adapter = read_hub_adapter(folder, pickle=True)
        languages = {} if name == "task" else {"sw": adapter}
        return with_hub_adapters(base, languages, adapter if name == "task" else None)

    def merge(folder: Path) -> object:
        return apply_adapters(load_model(base), folder)

    for name in ("task", "pfeiffer-invertible", "pickled"):
        files = {path.name: path.read_bytes() for path in (adapter_folder / name).iterdir()}
        for file in files:
            binary = not file.endswith(".json")
            variant = (files, file, partial(attach, name))
            yield Door(f"adapters {name} {file}", (variant,), binary=binary, cost=300.0)
    config = {"peft_type": "LORA", "r": 2, "target_modules": ["query"], "base_model_name_or_path": base}
    inside = "base_model.model.bert.encoder.layer.{}.attention.self.query.lora_{}.weight"
    weights = {
        inside.format(layer, side): torch.ones(shape)
        for layer in (0, 1)
        for side, shape in (("A", (2, 16)), ("B", (16, 2)))
    }
    files = {
        "adapter_config.json": json.dumps(config).encode(),
        "adapter_model.safetensors": save(weights),
    }
    for file in files:
        yield Door(f"peft {file}", ((files, file, merge),), binary="model" in file, cost=300.0)


DOORS: tuple[Callable[[], Iterator[Door]], ...] = (
    corpora, descriptions, predictions, outputs, archives, recipes, studies, manifests, gains,
    leases, names, requests, translations, models, adapters,
)  # fmt: skip


@cache
def doors() -> Mapping[str, Door]:
    """Return every door by its name."""
    return {door.name: door for group in DOORS for door in group()}
