"""Texts in several scripts with spans, written as each annotation tool exports them."""

import json
from collections.abc import Sequence
from pathlib import Path

from isogloss.features.annotation_tools.offsets import locate_words

TEXTS = {
    "Latin": ("Ana Li lives in Oslo.", [("Ana Li", "PER"), ("Oslo", "LOC")]),
    "Devanagari": ("रवि कल दिल्ली गया।", [("रवि", "PER"), ("दिल्ली", "LOC")]),
    "Arabic": ("ذهب علي إلى القاهرة.", [("علي", "PER"), ("القاهرة", "LOC")]),
    "Chinese": ("李明住在北京。", [("李明", "PER"), ("北京", "LOC")]),
    "Japanese": ("私はトヨタと東京へ行く。", [("トヨタ", "ORG"), ("東京", "LOC")]),
    "Thai": ("สมชายไปกรุงเทพ", [("สมชาย", "PER"), ("กรุงเทพ", "LOC")]),
    "Ethiopic": ("አበበ ወደ አዲስ አበባ ሄደ", [("አበበ", "PER"), ("አዲስ አበባ", "LOC")]),
    "Emoji": ("👩🏽\u200d🔬 Ana 🇳🇴 Oslo", [("Ana", "PER"), ("Oslo", "LOC")]),
    "Nothing": ("It rains.", []),
}
"""A text of each script, and the texts and types of its spans."""

Marked = tuple[str, list[tuple[int, int, str]]]
"""A text, and the offsets and type of each of its spans."""

JSON_TOOLS = ("doccano", "spacy", "objects", "prodigy", "datasets", "label-studio")
TOOLS = (*JSON_TOOLS, "brat", "webanno")


def offsets_of(script: str) -> list[tuple[int, int, str]]:
    """Return the spans of a text as offsets."""
    text, spans = TEXTS[script]
    return [(text.index(part), text.index(part) + len(part), type_name) for part, type_name in spans]


def marked_texts(scripts: Sequence[str]) -> list[Marked]:
    """Return the texts of scripts and their spans."""
    return [(TEXTS[script][0], offsets_of(script)) for script in scripts]


def body_of(marked_value: Marked, tool: str) -> dict[str, object]:
    """Return a text and its spans as a tool writes them in JSON."""
    text, spans = marked_value
    objects = [{"start": start, "end": end, "label": name} for start, end, name in spans]
    columns = {
        "start": [start for start, _, _ in spans],
        "end": [end for _, end, _ in spans],
        "label": [name for *_, name in spans],
    }
    results = [
        {
            "from_name": "ner",
            "to_name": "text",
            "type": "labels",
            "value": {"start": start, "end": end, "text": text[start:end], "labels": [name]},
        }
        for start, end, name in spans
    ]
    return {
        "doccano": {"id": 1, "text": text, "label": [list(span) for span in spans]},
        "spacy": {"text": text, "entities": [list(span) for span in spans]},
        "objects": {
            "text": text,
            "entities": [
                {"start_offset": start, "end_offset": end, "label": name} for start, end, name in spans
            ],
        },
        "prodigy": {"text": text, "spans": objects, "answer": "accept"},
        "datasets": {"text": text, "entities": columns},
        "label-studio": {"id": 1, "data": {"text": text}, "annotations": [{"result": results}]},
    }[tool]


def write_annotated(folder: Path, tool: str, texts: Sequence[Marked]) -> tuple[Path, str]:
    """Write texts as a tool does. Return the file and the fields of its description."""
    if tool == "brat":
        return write_brat(folder, texts), 'format = "brat"\n'
    if tool == "webanno":
        return write_webanno(folder, texts), 'format = "webanno"\n'
    bodies = [body_of(marked_text, tool) for marked_text in texts]
    if tool == "label-studio":
        file = folder / "texts.json"
        file.write_text(json.dumps(bodies, ensure_ascii=False), encoding="utf-8")
        return file, 'annotated = "offsets"\nformat = "json"\n'
    file = folder / "texts.jsonl"
    lines = [json.dumps(body, ensure_ascii=False) for body in bodies]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file, 'annotated = "offsets"\n'


def write_brat(folder: Path, texts: Sequence[Marked]) -> Path:
    """Write a file with a line for each text, and its annotations."""
    lines = list[str]()
    begin = 0
    for text, spans in texts:
        for start, end, name in spans:
            lines.append(f"T{len(lines) + 1}\t{name} {begin + start} {begin + end}\t{text[start:end]}")
        begin += len(text) + 1
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text, _ in texts), encoding="utf-8")
    (folder / "texts.ann").write_text(
        "".join(f"{line}\n" for line in [*lines, "#1\tNote T1\tx"]), encoding="utf-8"
    )
    return folder / "texts.ann"


def write_webanno(folder: Path, texts: Sequence[Marked]) -> Path:
    """Write WebAnno's TSV 3."""
    lines = ["#FORMAT=WebAnno TSV 3.3", "#T_SP=custom.Span|value", ""]
    value = 0
    begin = 0
    for sentence, (text, spans) in enumerate(texts, start=1):
        lines += ["", f"#Text={text}"]
        places = locate_words(text)
        cells = ["_"] * len(places)
        for start, end, name in spans:
            inside = [index for index, place in enumerate(places) if start <= place.start < end]
            value += len(inside) > 1
            for index in inside:
                cells[index] = f"{name}[{value}]" if len(inside) > 1 else name
        for index, (place, cell) in enumerate(zip(places, cells, strict=True), start=1):
            offsets = f"{begin + place.start}-{begin + place.stop}"
            lines.append(f"{sentence}-{index}\t{offsets}\t{text[place.start : place.stop]}\t{cell}\t")
        begin += len(text) + 1
    (folder / "texts.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "texts.tsv"
