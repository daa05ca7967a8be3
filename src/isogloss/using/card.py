"""The model card of an exported model: what it is, what it scored, and how it is loaded."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from isogloss.core.languages import is_built_in, language_name
from isogloss.core.version import VERSION
from isogloss.data import CORPORA
from isogloss.encoders.language_files import MAPS_FILE, MODULES_FILE
from isogloss.encoders.language_modules import COPIES, modules_of
from isogloss.encoders.mixup import SETTINGS, WEIGHTS
from isogloss.encoders.speaking import language_maps_of
from isogloss.training.mixup_tasks import mixup_task
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.origin import SCORE_COLUMNS, Origin

LOADING = {
    "AutoModelForTokenClassification": """\
```python
from transformers import pipeline
tag = pipeline("token-classification", model="FOLDER", ignore_labels=[])
tag([["the", "words", "of", "a", "sentence"]], is_split_into_words=True)
```

A word's label is that of its first subword: of the pieces that come back, the first that begins where the
word begins. `aggregation_strategy="first"` does this by itself, but joins neighbouring words of one label
(right for entities, not for parts of speech) and takes what stands between punctuation for a word.

Give words, or a text whose words and punctuation are parted by spaces, as in training. What is longer than
LIMIT subwords is cut there, unless `stride=OVERLAP` is given (with an aggregation strategy).
The pieces of a long text are not quite those of isogloss, so labels can differ there; `isogloss predict`
gives each word the label from the piece that shows most of its surroundings.
""",
    "AutoModelForSequenceClassification": """\
```python
from transformers import pipeline
classify = pipeline("text-classification", model="FOLDER")
classify({"text": "the first text", "text_pair": "the second text"}, truncation=True)
```

With `truncation=True` the longer text is cut until both fit into LIMIT subwords, as in training.
`top_k=None` gives the probability of every label.
""",
    "AutoModelForQuestionAnswering": """\
```python
from transformers import AutoModelForQuestionAnswering, AutoTokenizer
model = AutoModelForQuestionAnswering.from_pretrained("FOLDER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER")
```

transformers 5 has no pipeline for questions (it went with 5.3). The answer runs from the best start to the
best end; passages longer than LIMIT subwords with their question are cut into windows that share OVERLAP.
`isogloss predict` does all of this: `isogloss.load_model("FOLDER").predict([(question, passage)])`.
""",
    "": """\
```python
import isogloss
model = isogloss.load_model("FOLDER")
model.predict([["the", "words", "of", "a", "sentence"]])
```

transformers has no class for this head: `AutoModel.from_pretrained("FOLDER")` loads the encoder alone, the
head is read by isogloss.
""",
}
"""How a model is loaded, by the class of transformers that loads its head."""


MAPPED = """\

**Not the whole model.** isogloss maps what the encoder says of each of these languages onto SOURCE, with the
maps in `FILE`: LANGUAGES. Programs that load this folder without isogloss leave the maps out: they read
SOURCE as scored below, and any other language unmapped. With the maps:

```python
import isogloss
isogloss.load_model("FOLDER").predict(inputs, language="LANGUAGE")
```
"""
"""What is said of a model whose encoder has language maps."""


MIXED = """\

**Two ways to use it.** This model (X-Mixup) was trained to read a text beside its translation into SOURCE:
in layer LAYER the text takes up what its translation says. AVERAGED.

- **Mixed**, as scored below where the corpus is called `paired`: with isogloss, which reads from `SETTINGS`
  and `WEIGHTS` where and how much is mixed. Neither transformers nor an ONNX file can do this.

  ```
  isogloss predict FOLDER FILE --translations TRANSLATIONS
  ```

  ```python
  import isogloss
  isogloss.load_model("FOLDER").predict(inputs, translations=translations)
  ```

- **Unmixed**, without isogloss: as above. Each text is read alone, as in the scores of the plain corpus;
  texts in SOURCE are always read so.
"""
"""What is said of a model that mixes inputs with their translations."""
MODULAR = """\

**Not the whole model.** Its encoder has KIND modules for each of these languages, in `FILE`: LANGUAGES.
Programs that load this folder without isogloss leave that file out, and WITHOUT. With the modules:

```python
import isogloss
isogloss.load_model("FOLDER").predict(inputs, language="LANGUAGE")
```
"""
"""What is said of a model whose encoder has language modules."""


def card(model: FineTuned, *, onnx: bool) -> str:
    """Return the text of README.md."""
    origin = model.origin
    parts = [
        _front(model, origin),
        f"# {origin.title}",
        _about(model, origin),
        "## How to load it",
        _loading(model, origin, onnx=onnx),
        "## Scores",
        _scores(origin),
        "## Data and licence",
        _data(origin),
        "## Versions",
        _versions(origin),
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _front(model: FineTuned, origin: Origin) -> str:
    """Return the lines that model hubs read."""
    real = [code for code in origin.languages if not is_built_in(code)]
    lines = [
        "library_name: transformers",
        *([f"pipeline_tag: {model.kind.pipeline}"] if model.kind.pipeline else []),
        *(["language:", *(f"- {code}" for code in real)] if real else []),
        "tags:",
        *(f"- {tag}" for tag in ("isogloss", "cross-lingual-transfer", origin.task)),
    ]
    return "\n".join(("---", *lines, "---"))


def _about(model: FineTuned, origin: Origin) -> str:
    return "\n".join(
        [
            f"A model for task **{origin.task}**, made by isogloss {VERSION}.",
            "",
            "| | |",
            "|---|---|",
            f"| labels | {' '.join(model.task.labels)} |",
            f"| method | {origin.method} |",
            f"| source languages | {_named(origin.source) or 'none'} |",
            f"| target languages in training | {_named(origin.target) or 'none'} |",
            f"| corpus | {origin.corpus} |",
            f"| encoder | {origin.encoder} |",
            f"| longest input | {model.longest} subwords |",
            f"| run | {origin.run} |",
        ]
    )


def _named(codes: Iterable[str]) -> str:
    return ", ".join(
        f"{language_name(code)} ({code})" if language_name(code) != code else code for code in codes
    )


def _loading(model: FineTuned, origin: Origin, *, onnx: bool) -> str:
    text = LOADING[model.kind.auto_class]
    text = text.replace("LIMIT", str(model.longest)).replace("OVERLAP", str(origin.overlap))
    if onnx:
        what = "the same model" if model.mixup is None else "the model without mixing"
        text += (
            f"\n`model.onnx` is {what} for other programs: inputs "
            f"{', '.join(f'`{name}`' for name in model.tokenizer.model_input_names)} of shape "
            "[batch, length], checked against this one with onnxruntime.\n"
        )
    return text + _mapped(model) + _modular(model) + _mixed(model)


def _mapped(model: FineTuned) -> str:
    maps = language_maps_of(model.network)
    if maps is None:
        return ""
    languages = sorted(maps.maps)
    text = MAPPED.replace("LANGUAGES", _named(languages)).replace("LANGUAGE", languages[0])
    return text.replace("SOURCE", _named((maps.source,))).replace("FILE", MAPS_FILE)


def _mixed(model: FineTuned) -> str:
    if model.mixup is None:
        return ""
    averaged = mixup_task(model.task.name).one_answer
    words = {
        "AVERAGED": "The answers to both are averaged" if averaged else "The text's own answer counts",
        "LAYER": str(model.mixup.layer),
        "SETTINGS": SETTINGS,
        "WEIGHTS": WEIGHTS,
        "SOURCE": _named((model.into,)),
    }
    text = MIXED
    for name, value in words.items():
        text = text.replace(name, value)
    return text


def _modular(model: FineTuned) -> str:
    about = modules_of(model.network)
    if about is None:
        return ""
    first = about.languages[0]
    without = f"read every language with the modules of {_named((first,))}"
    if about.how.kind not in COPIES:
        without = "run the encoder without its adapters, which answers otherwise than scored below"
    text = MODULAR.replace("LANGUAGES", _named(about.languages)).replace("LANGUAGE", first)
    return text.replace("KIND", about.how.kind).replace("WITHOUT", without).replace("FILE", MODULES_FILE)


def _scores(origin: Origin) -> str:
    if not origin.scores:
        return "None were recorded with the run."
    rows = [[_cell(row.get(name)) for name in SCORE_COLUMNS] for row in origin.scores]
    return "\n".join(_table(SCORE_COLUMNS, rows))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _cell(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)


def _data(origin: Origin) -> str:
    corpus = CORPORA.get(origin.corpus.partition(":")[0])
    if all(map(is_built_in, origin.languages)):
        return (
            "It was trained on built-in languages of isogloss: made-up text that comes with the "
            "package, under its licence (Apache-2.0)."
        )
    if corpus is None:
        return f"It was trained on corpus {origin.corpus}; see there for its licence."
    return (
        f"It was trained on corpus {corpus.name} ({corpus.url}), whose licence is: {corpus.licence}. The "
        f"encoder it started from, {origin.encoder}, has a licence of its own."
    )


def _versions(origin: Origin) -> str:
    made = ", ".join(f"{name} {number}" for name, number in origin.versions.items()) or "not known"
    now = ", ".join(f"{name} {_installed(name)}" for name in ("isogloss", "torch", "transformers"))
    return f"Trained with {made}; exported with {now}."


def _installed(name: str) -> str:
    try:
        return VERSION if name == "isogloss" else version(name)
    except PackageNotFoundError:
        return "(not installed as a package)"
