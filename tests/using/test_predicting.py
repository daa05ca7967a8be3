"""Files are predicted a few entries at a time, in order, in memory that does not grow."""

import gc
import json
import tracemalloc
from dataclasses import replace
from itertools import islice, repeat

import pytest
import torch

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.files import File
from isogloss.data.formats.conllu import read_conllu
from isogloss.tasks import TASKS
from isogloss.using.formats import FileEntry
from isogloss.using.predicting import PredictOptions, predict_file
from used import join_lines, text_file

PLAIN = PredictOptions()
NOTHING = "\t_" * 8

LINES = "".join(f"{'Anna saw ' * (number % 7)}\n" for number in range(600))


def predict_text(model, text, options=PLAIN, **more):
    return join_lines(predict_file(model, text_file(text), options, **more))


def test_lines_come_out_in_order_with_a_label_for_each_word(make_model):
    output_lines = predict_text(make_model(), LINES).splitlines()
    assert [line.partition("\t")[0] for line in output_lines] == LINES.splitlines()
    assert [len(line.partition("\t")[2].split()) for line in output_lines] == [
        len(line.split()) for line in LINES.splitlines()
    ]


def test_a_file_is_predicted_as_its_lines_alone_are(make_model):
    model = make_model()
    distinct_lines = "".join(sorted(set(LINES.splitlines(keepends=True))))
    assert predict_text(model, distinct_lines) == "".join(
        predict_text(model, line) for line in distinct_lines.splitlines(keepends=True)
    )


def test_conllu_comes_out_as_it_went_in_but_for_the_tags(make_model):
    row = "{}\tAnna\t_\tX\t_\tA=b\t{}\t{}\t1:x\tSpaceAfter=No"
    sentence = [
        "# sent_id = 1",
        f"1-2\tAnnaAnna{NOTHING}",
        row.format(1, 0, "root"),
        row.format(2, 1, "dep"),
        f"2.1\tx{NOTHING}",
    ]
    text = join_lines([*sentence, "", ""])
    output = predict_text(make_model(), text * 300)
    input_file, output_file = text_file(text * 300), text_file(output)
    (input_sentence, *_), (output_sentence, *_) = read_conllu(input_file), read_conllu(output_file)
    assert (input_sentence.words, input_sentence.heads, input_sentence.relations) == (
        output_sentence.words,
        output_sentence.heads,
        output_sentence.relations,
    )
    assert [line.split("\t")[:3] + line.split("\t")[4:] for line in output.splitlines()] == [
        line.split("\t")[:3] + line.split("\t")[4:] for line in (text * 300).splitlines()
    ]


def test_trees_go_into_their_columns(make_model):
    text = "1\tAnna" + "\t_" * 8 + "\n2\tsaw" + "\t_" * 8 + "\n\n"
    output = predict_text(make_model("parsing"), text * 3)
    tree, *_ = read_conllu(text_file(output.replace("\t_\t_\t_\t_", "\t_\tX\t_\t_")))
    assert sorted(tree.heads) in ([0, 1], [0, 2]) and tree.relations.count("root") == 1
    plain_output = predict_text(make_model("parsing"), "Anna saw\n")
    assert plain_output == f"Anna saw\t{tree.heads[0]} {tree.heads[1]}\t{' '.join(tree.relations)}\n"
    with pytest.raises(ConfigError, match=r"--scores: .*parsing"):
        predict_file(make_model("parsing"), text_file(""), PredictOptions(scores=True))


def test_questions_in_get_answers_by_id(make_model):
    qas = [{"id": str(number), "question": "Anna?", "answers": []} for number in range(3)]
    text = json.dumps({"data": [{"paragraphs": [{"context": "happen slow " * 30, "qas": qas}]}]})
    answers = json.loads(
        predict_text(make_model("qa", limit=64), text, PredictOptions(format="squad", language="sw"))
    )
    assert list(answers) == ["0", "1", "2"]
    assert all(answer in "happen slow " * 30 for answer in answers.values())


@pytest.mark.parametrize(("characters", "count"), [(1, 256), (600_000, 2)])
def test_no_more_is_read_than_is_predicted_together(make_model, characters, count):
    read = []
    entries = (read.append(number) or FileEntry(lines=("x" * characters,)) for number in range(1000))
    assert next(make_model().predict_entries(entries))[1] is None
    assert len(read) == count


def test_an_endless_stream_is_answered_as_it_comes(make_model):
    def endless():
        while True:
            yield "Anna\n"

    lines = predict_file(make_model(), File("stdin", endless, lambda: ""), PredictOptions())
    assert next(lines).startswith("Anna\t")


def test_a_language_is_checked_and_noted_in_json(make_model):
    output = predict_text(make_model(), "Anna\n", PredictOptions(language="sw", as_json=True))
    assert '"language": "sw"' in output
    with pytest.raises(ConfigError, match=r"--language: .*'Swahili'"):
        predict_file(make_model(), text_file(""), PredictOptions(language="Swahili"))


def test_probabilities_are_refused_where_there_are_none(make_model):
    from isogloss.using.kinds import probabilities_of

    with pytest.raises(ConfigError, match=r"--scores: .*qa.*text-classification, upos, word-tag"):
        probabilities_of(TASKS["qa"])


def test_a_broken_line_is_named_after_what_came_before_it(make_model):
    lines = predict_file(make_model(), text_file(b"Anna\n" * 300 + b"\xff\n"), PredictOptions())
    assert [next(lines) for _ in range(256)]
    with pytest.raises(DataError, match=r"input:301: .*0xff.*1.*UTF-8"):
        list(lines)


def test_progress_counts_lines_as_they_are_predicted(make_model, monkeypatch):
    monkeypatch.setattr("isogloss.training.length_batches.BUDGET", 64)
    progress_events = []
    predict_text(make_model(), LINES, on_progress=progress_events.append, lines=600)
    counts = [event.done for event in progress_events]
    assert counts == sorted(counts)
    assert (counts[-1], {event.total for event in progress_events}) == (600, {600})
    assert len({count for count in counts if count < 256}) > 4  # within the first group


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("mixed", [False, True], ids=["plain", "mixed"])
def test_memory_does_not_grow_with_the_file(make_model, make_mixing, mixed):
    model = (make_mixing if mixed else make_model)()
    endless = File("input", lambda: repeat("Anna saw slow casually .\n"), lambda: "")
    lines = predict_file(model, endless, replace(PLAIN, translations=endless if mixed else None))
    tracemalloc.start()
    memory_samples = []
    for _ in range(3):
        assert len(list(islice(lines, 256))) == 256
        gc.collect()
        tensors = sum(type(live_object) is torch.Tensor for live_object in gc.get_objects())
        memory_samples.append((tracemalloc.get_traced_memory()[0], tensors))
    tracemalloc.stop()
    _, (memory_before, tensors), (memory_after, still) = memory_samples
    assert still == tensors
    # Entries and examples of 256 lines take 250 KiB.
    assert memory_after - memory_before < 64 * 1024
