"""Write the parts of the pages that come from the code: fields, rows, languages, corpora.

Everything between ``<!-- made: NAME -->`` and ``<!-- end -->`` on a page is generated here, the rest is
written by hand. ``make docs`` calls this script, and a test fails if a page differs from its output.
"""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import isogloss
from isogloss.aligners import ALIGNERS
from isogloss.cli.app import app
from isogloss.core import run_parts
from isogloss.core.rows import ROWS
from isogloss.core.run_parts import (
    Architecture,
    Modules,
    NewSubwords,
    Optimization,
    Replay,
    is_nested,
    values_of,
)
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.features.built_in_languages import LANGUAGES, SIZES, Language, card, split_size
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.described_corpora import descriptions
from isogloss.features.translation.planning import TrainTable, TranslateTable
from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PEFT, PRETRAINING, TRANSLATION_TRAINING
from isogloss.methods.presets import DIFFERENCES, MODULES, PresetDifference
from isogloss.planning import measures
from isogloss.recipes import recipe
from isogloss.translators import TRANSLATORS

DOCS = Path(__file__).parent
MANY = 8
"""A list of more values is not written out."""

COMMON_OPTIONS = {"quiet", "as_json", "debug", "help"}
"""Options of every command, which the page lists once."""

LOSSES = ("AlignmentLoss", "MetaLearner", "MixupLoss")
"""Classes that users construct. Functions return the others."""

SHARED = {
    "alphas": "values of α, each a point",
    "announce": "called once with the plan, before any run",
    "baseline": "predictions that the system is compared with, in the same form",
    "batch_size": "pairs of sentences in an update",
    "candidates": "codes of languages to choose from",
    "changes": "dotted keys of the recipe and their values",
    "clip": "largest norm of a gradient of φ; 0: none",
    "command": "what the plan notes as the command",
    "data": "folder with corpora; the built-in languages need none",
    "description": "a name, a TOML file, or its fields as a mapping",
    "epochs": "times that all pairs are learned from",
    "execution": "how runs are executed, as listed above or for `run`",
    "gold": "right answers in the same form, or a file of them. Default: those that tables and files have",
    "first": "sentences: texts, or lists of words",
    "folder": "folder or name on the hub; several make an ensemble",
    "language": "code of a language, or of a pair such as en-sw",
    "languages": "codes of both languages; required by encoders with modules of languages",
    "layer": "number of a layer from 1; -1 is the last, 0 the embeddings or the default",
    "layers": "numbers of layers; 0 is the embeddings, -1 the last. Default: all",
    "learning_rate": "highest rate of AdamW",
    "links": "links of words, 0-based pairs for each sentence. Default: found by `align`",
    "loss": "from a model and a batch to its loss. Default: the model's own, of a batch with labels",
    "model": "a model of transformers, peft or sentence-transformers, or states where the signature allows",
    "models": "models of one class",
    "name": "name, folder or file",
    "on_progress": "receives each `Progress`. Default: a bar after two seconds",
    "on_trial": "receives each `Trial`",
    "origin": "the model that differences are taken from",
    "out": "folder of runs, or a URL",
    "precision": "float32, bfloat16, or auto: the faster one on this machine",
    "recipe": "TOML file, name of a packaged recipe, mapping, or `Recipe`; of `run` also several",
    "report": "whether the report is written",
    "scale": "name of a scale of the recipe",
    "second": "their translations, in the same order and form; for models and states, the second side",
    "seed": "seed of all that is drawn",
    "split": "train, dev or test",
    "system": "predictions for each example, or a mapping from seeds to these",
    "target": "code of the language to transfer to",
    "texts": "texts or lists of words; of `anisotropy` their states, of `rank_sources` texts by language",
    "tokenizer": "the model's tokenizer, or the states of the other side",
    "translated": "the translations: texts, or lists of words",
    "weight_decay": "weight decay of φ",
}
"""Arguments that mean the same in all functions. A sentence of the docstring has priority."""

SAME_AS = {
    "retrieval": "cka",
    "word_distances": "cka",
    "plane": "path",
    "language_gates": "gradient_conflict",
    "search": "run",
    "AlignmentLoss": "adjust",
    "MixupLoss": "mixing",
}
"""Functions whose docstring refers to another one for the other arguments."""

QUOTE = "'"
"""Around types that are written as texts."""

FROM_METHODS = {
    ("MixupLoss", "learned_ratio"): (
        "whether the ratio is learned (Eq. 5). Default: yes, unless the preset fixes it"
    ),
}

SENTENCES = re.compile(r"(?<=[.:;])(?<!Eq\.)(?<!Eqs\.)(?<!al\.)(?<!Figs\.)\s+(?=[A-Z`0-9])")
ERROR = re.compile(r"\b[A-Z]\w*Error\b")

BLOCK = re.compile(r"(<!-- made: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def main() -> None:
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (result := render(text)) != text:
            page.write_text(result, encoding="utf-8")
            print(page.relative_to(DOCS))


def render(text: str) -> str:
    """Return a page with its made parts as they should be."""
    return BLOCK.sub(lambda block: f"{block[1]}{BLOCKS[block[2]]()}\n{block[3]}", text)


def table(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a markdown table."""
    cells = [[" ".join(str(cell).replace("|", "\\|").split()) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [list(heads), ["---"] * len(heads), *cells])


def field_table(kind: type[Any]) -> str:
    """Return the fields of a dataclass, with type, default and the docstring under each."""
    return table(
        ("field", "type", "default", "what it is"),
        ((f"`{name}`", *columns) for name, *columns in _list_fields(kind)),
    )


def rows_of_records() -> str:
    """Return the columns of every kind of row that a record can hold."""
    return table(
        ("rows of", "what one is", "columns"),
        (
            (f"`{name}`", _first_line(kind), ", ".join(f"`{field.name}`" for field in fields(kind)))
            for name, kinds in ROWS.items()
            for kind in kinds
        ),
    )


def claim_tables() -> str:
    """Return the claims of each paper with where they stand and the rule they are judged by."""
    parts = []
    for paper in dict.fromkeys(claim.title for claim in CLAIMS):
        claims = [claim for claim in CLAIMS if claim.title == paper]
        lines = (
            (claim.id, claim.says, claim.where, claim.code, claim.rule, claim.threshold) for claim in claims
        )
        heads = ("", "claim", "in the paper", "their code", "rule", "whose threshold")
        parts.append(f"## {paper}\n\n{table(heads, lines)}")
    return "\n\n".join(parts)


def method_tables() -> str:
    """Return a section for each method of fine-tuning, auxiliary loss, and method of pretraining."""
    return _sections({**METHODS, **AUXILIARY_LOSSES, **PRETRAINING})


def diagnostic_tables() -> str:
    """Return a section for each diagnostic, with its subject and the field that chooses it."""

    def describe(kind: Any) -> str:
        subject = measures.SUBJECTS[kind.subject]
        fields = ", ".join(f"`{name}`" for name in subject.fields)
        return f"\n\nOne for each {subject.runs}. Fields that choose what is measured: {fields}."

    return _sections(dict(sorted(DIAGNOSTICS.items())), describe)


def number_types() -> str:
    """Return the names for numbers with a range."""
    return table(("type", "what it takes"), sorted(_constants(run_parts).items()))


def family() -> str:
    """Return the built-in languages, one a column of what differs."""
    cards = {language: card(language) for language in LANGUAGES}
    heads = [head for head in next(iter(cards.values())) if head not in ("language", "names")]
    return table(
        ("", *(card["language"] for card in cards.values())),
        ((head, *(card.get(head, "") for card in cards.values())) for head in heads),
    )


def command_tables() -> str:
    """Return a section for each command, with its arguments and options."""
    return "\n\n".join(_command_sections("isogloss", typer.main.get_command(app)))


def _command_sections(path: str, group: Any) -> list[str]:
    sections = []
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            sections += _command_sections(f"{path} {name}", command)
        else:
            rows = [_option_cells(option) for option in command.params if option.name not in COMMON_OPTIONS]
            options = f"\n\n{table(('option', 'meaning', 'default'), rows)}" if rows else ""
            sections.append(f"### {path} {name}\n\n{_prose(command.help)}{options}")
    return sections


def _option_cells(option: Any) -> tuple[str, str, str]:
    is_argument = option.param_type_name == "argument"
    flags = [option.metavar or option.name] if is_argument else [*option.opts, *option.secondary_opts]
    default = option.default
    has_default = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    return ", ".join(f"`{flag}`" for flag in flags), option.help or "", f"`{default}`" if has_default else ""


def sizes() -> str:
    """Return the number of examples in each split."""
    return table(
        ("corpus", "train", "dev", "test", "train of a low-resource language"),
        (
            (corpus, *splits.values(), split_size(corpus, _scarce(), "train"))
            for corpus, splits in SIZES.items()
        ),
    )


def corpora() -> str:
    """Return a section for each corpus: the description in its file, and a file it reads."""
    return "\n\n".join(
        "\n\n".join(
            (
                f"### `{name}`",
                _prose(corpus.about.text),
                f"Labels for: {' '.join(corpus.tasks)}. Read for example from `{_example(corpus)}`. "
                f"Licence: {corpus.about.licence}.{f' <{corpus.about.url}>' if corpus.about.url else ''}",
            )
        )
        for name, corpus in sorted(CORPORA.items())
    )


def preset_table() -> str:
    """Return every field in which papers, released code and defaults differ, with the source of each."""
    parts = {**METHODS, **ADJUSTMENTS, **AUXILIARY_LOSSES, **PRETRAINING, MODULES: Modules}

    def default(row: PresetDifference) -> object:
        part = parts[row.parts[0]]
        values = values_of(part(kind="adapter") if part is Modules else part())
        return (values_of(Optimization()) | values)[row.field]

    return table(
        ("of", "field", "paper", "released", "here", "where"),
        (
            (
                ", ".join(f"`{name}`" for name in row.parts),
                f"`{row.field}`",
                _format_value(row.paper),
                _format_value(row.released),
                _format_value(default(row)),
                row.sources,
            )
            for row in DIFFERENCES
        ),
    )


RESULTS = DOCS.parent / "benchmarks" / "results"
"""Results of benchmarks, as written with ``--out``."""


def _load_measured(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def start_times() -> str:
    """Return the cost of processes, also as ratios to the import of torch."""
    start = _load_measured("start")
    torch = next(iter(start.values()))
    lines = ((name, f"{seconds:.2f}", f"{seconds / torch:.2f}") for name, seconds in start.items())
    return table(("process", "processor seconds", ": import torch"), lines)


def import_times() -> str:
    """Return the shares of imports in the start of a prediction, and what asks for each."""
    lines = (
        (f"`{package['import']}`", package["asked for by"], f"{package['share']:.0%}")
        for package in _load_measured("imports")
    )
    return table(("import", "asked for by", "share"), lines)


def point_times() -> str:
    """Return the time of each part of a point, before and after."""
    pairs = zip(_load_measured("points-before"), _load_measured("points"), strict=True)
    parts = ("mixing", "forward", "decoding", "scoring", "point")
    return table(
        ("task", *(f"{part}, ms" for part in parts), "floor"),
        (
            (
                later["task"],
                *(f"{1000 * earlier[part]:.1f} → {1000 * later[part]:.1f}" for part in parts),
                f"{later['floor']:.0%}",
            )
            for earlier, later in pairs
        ),
    )


def step_times() -> str:
    """Return the shares of a step's time, by kind of operation, of two sizes of an encoder."""
    sizes = (("steps-small", "4 × 256"), ("steps-base", "12 × 768"))
    kinds = [
        (size, name, kind) for file, size in sizes for name, kind in _load_measured(file)["kinds"].items()
    ]
    heads = [head for head in kinds[0][2] if head != "milliseconds"]
    return table(
        ("layers × width", "training", *heads),
        ((size, name, *(f"{kind[head]:.0%}" for head in heads)) for size, name, kind in kinds),
    )


def scale_times() -> str:
    """Return the cost of many finished runs, by their number."""
    sizes = _load_measured("scale")["after"]
    lines = ((f"{size['runs']:,}", *(f"{value:g}" for value in list(size.values())[1:])) for size in sizes)
    return table(tuple(sizes[0]), lines)


INPUTS = {
    "text": "text, read",
    "encode": "text, tokenized for masked LM",
    "conllu": "CoNLL-U, read",
    "pairs": "sentence pairs, read",
    "align": "sentence pairs, aligned",
}
"""Tasks of `benchmarks/large_inputs.py`, as the table names them."""


def rounding() -> str:
    """Return the scores of models before and after rounding to int8."""
    lines = (
        (
            row["task"],
            row["language"],
            row["metric"],
            f"{row['examples']:,}",
            f"{100 * row['float32']:.2f}",
            f"{100 * row['int8']:.2f}",
            f"{100 * (row['int8'] - row['float32']):+.2f}",
        )
        for row in _load_measured("rounding")
    )
    heads = ("task", "language", "metric", "dev examples", "float32", "int8", "difference")
    return table(heads, lines)


def prediction() -> str:
    """Return the time per sentence of each engine and precision, and its ratio to torch in float32."""
    rows = _load_measured("prediction")["rows"]
    usual = {row["model"]: row["milliseconds"] for row in rows if row["engine"] == "torch, float32"}
    lines = (
        (
            row["model"],
            row["engine"],
            f"{row['milliseconds']:.2f}",
            f"{usual[row['model']] / row['milliseconds']:.1f}",
        )
        for row in rows
    )
    return table(("model", "engine and precision", "ms per sentence", "times as fast"), lines)


def before_and_after() -> str:
    """Return the measures of an earlier and this version, and of their peers."""
    lines = (
        (
            row["measure"],
            row["unit"],
            f"{row['before']:,.3g}",
            f"{row['now']:,.3g}",
            f"{row['before'] / row['now']:.1f}",
            f"{row[PEERS]:,.3g} ({row['peer']})" if row.get(PEERS) is not None else "",
        )
        for row in _load_measured("before-and-after")
    )
    return table(("measure", "unit", "before", "now", "before : now", "peer"), lines)


PEERS = "peer's"
"""Key of the number of a peer."""


def large_times() -> str:
    """Return time and memory per row of large inputs, by input and program."""
    lines = (
        (
            INPUTS[slope["task"]],
            slope["by"],
            f"{slope['rows'][-1]:,}",
            f"{slope['microseconds per row']:,.3g}",
            f"{slope['growth']:.2f}",
            f"{max(0, slope['bytes per row']):,.0f}",
            f"{slope['tenfold, hours']:.1f} h, {slope['tenfold, GB']:.1f} GB",
        )
        for slope in _load_measured("large-inputs")["slopes"]
    )
    heads = (
        "input",
        "by",
        "rows",
        "µs per row",
        "largest : smallest",
        "bytes per row",
        "ten times the whole",
    )
    return table(heads, lines)


def _format_value(value: object) -> str:
    """Write a value, or values by corpus and kind of labels. None becomes a dash."""
    if isinstance(value, dict):
        return ", ".join(
            f"{_format_value(part)}{f' ({name})' if name else ''}" for name, part in value.items()
        )
    return "–" if value is None else f"`{_toml(value)}`"


@dataclass(frozen=True)
class FunctionReference:
    """Section of the reference on a public function."""

    name: str
    summary: str
    details: str
    arguments: tuple[tuple[str, str, str, str], ...]
    """Name, type, default and description of each."""
    result: str
    errors: tuple[str, ...]
    device: str
    cost: str


def public_functions() -> dict[str, Callable[..., Any]]:
    """Return the public functions, and the classes that users construct, by name."""
    return {
        name: thing
        for name in isogloss.__all__
        if inspect.isfunction(thing := getattr(isogloss, name)) or name in LOSSES
    }


def describe_function(name: str) -> FunctionReference:
    """Return the reference of a public function from its signature and docstring."""
    thing = getattr(isogloss, name)
    paragraphs = _paragraphs(thing)
    facts = next((part for part in paragraphs if part.startswith("Device: ")), "")
    device, _, cost = _as_markdown(facts.removeprefix("Device: ")).partition(" Cost: ")
    paragraphs = [part for part in paragraphs if part is not facts]
    sentences = [sentence for part in paragraphs for sentence in SENTENCES.split(part)]
    return FunctionReference(
        name=name,
        summary=paragraphs[0],
        details="\n\n".join(_as_markdown(part) for part in paragraphs[1:] if not ERROR.match(part)),
        arguments=tuple(_arguments(name, sentences)),
        result=_result(thing, paragraphs[0], sentences),
        errors=tuple(_errors(sentences)),
        device=device,
        cost=cost,
    )


def function_sections() -> str:
    """Return a section for each public function."""
    return "\n\n".join(
        _section(describe_function(name)) for name in sorted(public_functions(), key=str.lower)
    )


def _section(reference: FunctionReference) -> str:
    rows = [
        f"| `{name}` | {kind} | {default} | {text} |" for name, kind, default, text in reference.arguments
    ]
    table = "\n".join(["| argument | type | default | what it is |", "| --- | --- | --- | --- |", *rows])
    errors = " ".join(reference.errors)
    return (
        "\n\n".join(
            part
            for part in (
                f"### `{reference.name}`",
                reference.summary,
                reference.details,
                table,
                f"- **Result:** {reference.result}",
                f"- **Errors:** {errors} An argument outside its choices or range is a ConfigError.",
                f"- **Device:** {reference.device}",
                f"- **Cost:** {reference.cost}",
            )
            if part
        )
        .replace("\n\n- **", "\n- **")
        .replace("|\n- **Result", "|\n\n- **Result")
    )


def _arguments(name: str, sentences: list[str]) -> Iterator[tuple[str, str, str, str]]:
    annotations = _written_annotations(getattr(isogloss, name))
    for argument, (kind, default) in annotations.items():
        yield argument, kind.replace("|", "or"), default, _argument_text(name, argument, sentences)


def _argument_text(name: str, argument: str, sentences: list[str]) -> str:
    """Return the text on an argument: its own sentence, the shared one, or one that mentions it."""
    other_sentences = _sentences_of(getattr(isogloss, SAME_AS[name])) if name in SAME_AS else []
    return (
        FROM_METHODS.get((name, argument))
        or _mention(argument, sentences, is_at_start=True)
        or _mention(argument, other_sentences, is_at_start=True)
        or SHARED.get(argument)
        or _mention(argument, sentences)
        or _mention(argument, other_sentences)
    )


def _mention(argument: str, sentences: list[str], *, is_at_start: bool = False) -> str:
    mark = f"``{argument}``"
    for sentence in sentences:
        is_found = sentence.startswith(mark) if is_at_start else mark in sentence
        if is_found and not ERROR.match(sentence):
            return _as_markdown(sentence.rstrip(".;:"))
    return ""


def _sentences_of(thing: Any) -> list[str]:
    return [sentence for part in _paragraphs(thing) for sentence in SENTENCES.split(part)]


def _paragraphs(thing: Any) -> list[str]:
    """Return the paragraphs of a docstring before its examples, each in a line. A list has a line an item."""
    prose = (inspect.getdoc(thing) or "").partition("\n>>>")[0]
    paragraphs = []
    for part in prose.split("\n\n"):
        items = re.split(r"\n(?=- )", part.strip())
        paragraphs.append("\n".join(" ".join(item.split()) for item in items))
    return [part for part in paragraphs if part]


def _errors(sentences: list[str]) -> Iterator[str]:
    for sentence in sentences:
        if ERROR.search(sentence):
            yield _as_markdown(sentence)


def _result(thing: Any, summary: str, sentences: list[str]) -> str:
    """Return the type of the result, and the sentences on its rows and columns."""
    forward = getattr(thing, "forward", None)
    if forward is not None:
        summary = " ".join((inspect.getdoc(forward) or "").partition("\n\n")[0].split())
        return f"each call: {summary} ({_returns(forward)})"
    facts = [
        sentence
        for sentence in sentences[1:]
        if re.search(r"\b[Cc]olumns?\b|\b[Rr]ows?\b|\b[Rr]esult\b|\bindex\b|\battrs\b", sentence)
        and not ERROR.match(sentence)
    ]
    text = summary.removeprefix("Return ").rstrip(".")
    return " ".join(
        [f"{_returns(thing)}: {text[:1].lower()}{text[1:]}.", *(_as_markdown(fact) for fact in facts)]
    )


def _returns(function: Any) -> str:
    node = _function_node(function)
    return f"`{ast.unparse(node.returns)}`".replace("'", "").replace('"', "") if node.returns else ""


def _written_annotations(thing: Any) -> dict[str, tuple[str, str]]:
    """Return type and default of each argument. Types are as written, with names of aliases."""
    function = thing.__init__ if inspect.isclass(thing) else thing
    arguments = _function_node(function).args
    all_arguments = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    kinds = {
        argument.arg: ast.unparse(argument.annotation) for argument in all_arguments if argument.annotation
    }
    return {
        name: (
            f"`{kinds.get(name, 'keyword arguments').strip(QUOTE)}`",
            "required" if parameter.default is parameter.empty else _shown_default(parameter.default),
        )
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "self"
    }


def _shown_default(value: object) -> str:
    if callable(value):
        return "nothing"
    if isinstance(value, tuple) and len(value) > MANY:
        return f"{len(value)} values from {value[0]:g} to {value[-1]:g}"
    return f"`{value!r}`"


def _function_node(function: Any) -> ast.FunctionDef:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    if not isinstance(node, ast.FunctionDef):
        raise TypeError(f"{function} is no function.")
    return node


def _as_markdown(text: str) -> str:
    return text.replace("``", "`")


def _sections(kinds: dict[str, type[Any]], describe: Callable[[Any], str] | None = None) -> str:
    return "\n\n".join(
        f"### `{name}`\n\n{_first_line(kind)}{describe(kind) if describe else ''}\n\n"
        + (field_table(kind) if fields(kind) else "It has no fields.")
        for name, kind in kinds.items()
    )


def _first_line(kind: type[Any]) -> str:
    return (kind.__doc__ or "").splitlines()[0]


def _list_fields(kind: type[Any]) -> list[tuple[str, str, str, str]]:
    """List name, type, default and description of each field."""
    texts = {}
    for owner in (element for element in reversed(kind.__mro__) if is_dataclass(element)):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
        lines = body.body  # type: ignore[attr-defined]
        texts |= {
            ast.unparse(line.target): (_type(ast.unparse(line.annotation)), _text(following))
            for line, following in zip(lines, [*lines[1:], None], strict=True)
            if isinstance(line, ast.AnnAssign)
        }
    rows = []
    for field in fields(kind):
        if is_nested(field):  # Its fields are listed with the others, with the defaults of this owner.
            values = values_of(field.default)
            rows += [
                (
                    name,
                    kind_text,
                    f"`{json.dumps(values[name])}`" if values[name] is not None else "none",
                    text,
                )
                for name, kind_text, _, text in _list_fields(type(field.default))
            ]
        else:
            rows.append((field.name, texts[field.name][0], _default(field), texts[field.name][1]))
    return rows


def _type(annotation: str) -> str:
    """Say a type as the writer of a recipe sees it."""
    for pattern, plain_result in _PLAIN:
        annotation = re.sub(pattern, plain_result, annotation)
    return annotation


_PLAIN = (
    (r"\bOneOrMany\b", "str | tuple[str, ...]"),
    (r"\bOrder|Side|Marking|CaseMarking|Script\b", "str"),
    (r"\bLanguage\b", "str"),
    (r"\bSplit\b", "train, dev or test"),
    (r"Annotated\[float, .*\]", "number in [0, 1)"),
    (r"tuple\[(.*), \.\.\.\]", r"list of \1"),
    (r"dict\[str, (?:Table|str)\]", "table"),
    (r"\b[A-Z]\w*Table \| None", "table"),
    (r"\b(?:[A-Z]\w*)?Table\b|\bArchitecture\b", "table"),
    (r"list of (.*) \| (.*)", r"list of \1 or \2"),
    (r" \| ", " or "),
    (r"\bstr\b", "text"),
    (r"\bint\b", "whole number"),
    (r"\bfloat\b", "number"),
    (r"\bbool\b", "true or false"),
    (r"\b(Whole|Count|Positive|Share|Rate|Weight)\b", r"`\1`"),
)


def _default(field: Field[Any]) -> str:
    """Write a default as TOML does."""
    if field.default is MISSING and field.default_factory is MISSING:
        return "must be given"
    value = field.default if field.default_factory is MISSING else field.default_factory()
    if is_dataclass(value):
        return "as below"
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, tuple) and len(value) > MANY:
        return f"{len(value)} values from {value[0]:g} to {value[-1]:g}"
    return f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(part)}' for key, part in value.items())} }}"
    return json.dumps(value, ensure_ascii=False)


def _text(line: ast.stmt | None) -> str:
    if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant):
        return " ".join(str(line.value.value).split()).replace("``", "`")
    return ""


def _constants(module: ModuleType) -> dict[str, str]:
    """Return the module's Annotated names with the text under each."""
    body = ast.parse(inspect.getsource(module)).body
    return {
        f"`{ast.unparse(line.targets[0])}`": _text(following)
        for line, following in pairwise(body)
        if isinstance(line, ast.Assign) and ast.unparse(line.value).startswith("Annotated[")
    }


def _prose(text: str) -> str:
    """Return a text in several lines as one paragraph."""
    return " ".join(text.split()).replace("``", "`")


def _example(corpus: Any) -> str:
    pair = {"bitext", "comparable"} & set(corpus.tasks)
    split = "dev" if corpus.name in ("mlqa", "bucc2018") else "train"
    return str(corpus.path("en-fr" if pair else "en", split))


def _scarce() -> str:
    return min(LANGUAGES, key=lambda language: LANGUAGES[language].size)


BLOCKS: dict[str, Callable[[], str]] = {
    "commands": command_tables,
    "recipe": partial(field_table, recipe.Recipe),
    "encoder": partial(field_table, recipe.EncoderTable),
    "pretrain": partial(field_table, recipe.PretrainTable),
    "architecture": partial(field_table, Architecture),
    "modules": partial(field_table, Modules),
    "new-subwords": partial(field_table, NewSubwords),
    "replay": partial(field_table, Replay),
    "aligners": partial(_sections, ALIGNERS),
    "translate": partial(field_table, TranslateTable),
    "translators": partial(_sections, TRANSLATORS),
    "train-translator": partial(field_table, TrainTable),
    "translator-training": partial(_sections, TRANSLATION_TRAINING),
    "adjust": partial(field_table, recipe.AdjustTable),
    "adjustments": partial(_sections, ADJUSTMENTS),
    "grid": partial(field_table, recipe.GridTable),
    "method": partial(field_table, recipe.MethodTable),
    "peft": partial(_sections, PEFT),
    "optimization": partial(field_table, Optimization),
    "measure": partial(field_table, recipe.MeasureTable),
    "language": partial(field_table, Language),
    "presets": preset_table,
    "claims": claim_tables,
    "methods": method_tables,
    "diagnostics": diagnostic_tables,
    "number-types": number_types,
    "rows": rows_of_records,
    "family": family,
    "sizes": sizes,
    "corpora": corpora,
    "start-times": start_times,
    "import-times": import_times,
    "point-times": point_times,
    "step-times": step_times,
    "scale-times": scale_times,
    "large-inputs": large_times,
    "before-and-after": before_and_after,
    "rounding": rounding,
    "prediction": prediction,
    "description": partial(field_table, descriptions.Description),
    "functions": function_sections,
}


if __name__ == "__main__":
    main()
