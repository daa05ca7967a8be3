"""Files of annotation tools: a tagger learns from one, predicts one, and its predictions are read again."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

import isogloss
from annotated_files import TOOLS, Marked, write_annotated
from isogloss.core.tag_schemes import Span, find_spans
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import disk_file
from isogloss.features.annotation_tools.offsets import locate_spans, locate_words
from isogloss.features.built_in_languages import examples
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.using import load_model
from isogloss.using.predicting import PredictOptions, predict_file

SENTENCES = 32

IN_SLOW = ("doccano", "label-studio", "brat", "webanno")
"""Tools that are tested every time. The others differ from these in their keys."""

RECIPE = """
title = "Our own names"
encoder = "shipped"

[grid]
corpus = "TOOL.toml"
source = "qaa"
targets = ["qab"]
seeds = [0]
optimization = { epochs = 5, learning_rate = 3e-3, batch_size = 8, precision = "float32" }

[[grid.method]]
name = "source-only"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "tool",
    [tool if tool in IN_SLOW else pytest.param(tool, marks=pytest.mark.nightly) for tool in TOOLS],
)
def test_a_tagger_of_annotated_texts_writes_spans_that_are_read_again(tmp_path, tool):
    texts = read_texts("qaa")
    path, fields = write_annotated(tmp_path, tool, texts)
    description = describe(tmp_path, tool, path, fields)
    gold = read_spans(description.read(None, "qaa", "test"))
    assert gold == expected_spans(texts)
    (tmp_path / "recipe.toml").write_text(RECIPE.replace("TOOL", tool), encoding="utf-8")
    result = isogloss.run(tmp_path / "recipe.toml", out=tmp_path / "runs", jobs=1, report=False)
    (record,) = (record for record in result.records if record.kind == "fine-tune")
    model = load_model(tmp_path / "runs" / record.id)
    sentences = [example.words for example in description.read(None, "qaa", "test")]
    predicted_spans = [find_spans(tags) for tags in model.predict(sentences)]
    total = sum(len(set(spans) & set(right)) for spans, right in zip(predicted_spans, gold, strict=True))
    assert total
    lines = list(predict_file(model, disk_file(path), PredictOptions()))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert read_spans(description.read(None, "qaa", "test")) == predicted_spans


def read_texts(language: str) -> list[Marked]:
    """Return sentences of a built-in language as texts with marked names."""
    texts = list[Marked]()
    for example in islice(examples("wikiann", language, "train"), SENTENCES):
        text = " ".join(example.words)
        spans = locate_spans(text, example.tags, locate_words(text))
        texts.append((text, [(span.start, span.stop, span.type) for span in spans]))
    return texts


def expected_spans(texts: Iterable[Marked]) -> list[list[Span]]:
    """Return the spans of texts whose words are separated by single spaces."""
    return [
        [Span(name, text[:start].count(" "), text[:stop].count(" ") + 1) for start, stop, name in spans]
        for text, spans in texts
    ]


def describe(folder: Path, tool: str, file: Path, fields: str):
    """Describe a file that is every split in each language."""
    splits = ", ".join(f'{split} = "{file.name}"' for split in ("train", "dev", "test"))
    text = f'kind = "tagging"\nfiles = {{ {splits} }}\nlanguages = ["qaa", "qab"]\n{fields}'
    (folder / f"{tool}.toml").write_text(text, encoding="utf-8")
    return describe_corpus(folder / f"{tool}.toml")


def read_spans(sentences: Iterable[TaggedSentence]) -> list[list[Span]]:
    """Return the spans of each sentence, also where it has none, with or without tags."""
    return [find_spans(sentence.tags) for sentence in sentences]
