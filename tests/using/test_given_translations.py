"""Inputs are mixed with their own translations, in step, and those without one are reported once."""

import json
import warnings
from dataclasses import replace
from itertools import count

import pytest
import torch
from used import join_lines, text_file

from each import each
from in_translation import link_words, pairs, questions, sentences
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import File
from isogloss.data.projection.label_projection import Translated, translate_inputs
from isogloss.data.sources import Sources
from isogloss.using.predicting import PredictOptions, check_translations, input_translator, predict_file
from isogloss.using.predictor import GROUP_SIZE
from isogloss.using.scoring import EvaluateOptions, check_evaluation

VALUES = {
    "upos": lambda code: [one.words for one in sentences(code, 12)],
    "nli": lambda code: [(one.first, one.second) for one in pairs(code, 12)],
    "qa": lambda code: (
        [(one.question, one.passage) for one in questions("en", 12)]
        if code == "en"
        else [(one.question + " slow", one.passage[::-1]) for one in questions("en", 12)]
    ),
}
TASKS = pytest.mark.parametrize("task", sorted(VALUES))


@pytest.fixture
def warnings_list():
    return []


def predict_text(model, text, reported, **how):
    return join_lines(predict_file(model, text_file(text), PredictOptions(warn=reported.append, **how)))


def score_values(model, values, translations=None):
    examples = [model.kind.example(one, str(number), "") for number, one in enumerate(values)]
    others = translations and [
        None if one is None else model.kind.example(one, "x", "") for one in translations
    ]
    return model.prepare(examples, translations=others).scores(model.network)


@TASKS
def test_values_are_predicted_as_the_corpus_scores_them(make_mixing, task):
    model = make_mixing(task)
    here, there = VALUES[task]("de"), VALUES[task]("en")
    examples = [model.kind.example(one, str(number), "") for number, one in enumerate(here)]
    others = [model.kind.example(one, str(number), "") for number, one in enumerate(there)]
    paired = model.prepare_by_id(examples, others[::-1])
    found = score_values(model, here, there)
    assert all(map(torch.equal, found, paired.scores(model.network)))
    assert not all(map(torch.equal, found, score_values(model, here)))
    assert model.predict(here, translations=there) == paired.predict(model.network)
    assert model.predict(examples, translations=others) == paired.predict(model.network)


def test_labelled_examples_are_scored_beside_their_translations(make_mixing):
    model, gold, there = make_mixing(), sentences("de", 24), sentences("en", 24)
    paired = model.prepare_by_id(gold, there)
    assert model.score(gold, translations=there) == paired.score(model.network) != model.score(gold)
    assert model.measures(gold, translations=there) == paired.measures(model.network)
    with pytest.raises(ValueError, match="zip"):
        model.score(gold, translations=there[1:])


@TASKS
def test_what_has_no_translation_is_predicted_as_without_any(make_mixing, task, recwarn):
    model, here, there = make_mixing(task), VALUES[task]("de"), VALUES[task]("en")
    some = [one if number % 3 else None for number, one in enumerate(there)]
    found, mixed, alone = (score_values(model, here, others) for others in (some, there, None))
    for number, scores in enumerate(found):
        assert torch.allclose(scores, (mixed if number % 3 else alone)[number], atol=1e-4)
    model.predict(here, translations=some)
    (warning,) = recwarn
    assert "translation" in str(warning.message)


def test_blank_translations_are_none(make_mixing, recwarn):
    model, here = make_mixing(), VALUES["upos"]("de")
    assert model.predict(here, translations=["", "  ", [], None] * 3) == model.predict(here)
    assert len(recwarn) == 2
    two = make_mixing("nli")
    here = VALUES["nli"]("de")
    assert two.predict(here, translations=[("", " ")] * 12) == two.predict(here)


def test_without_translations_one_warning_says_what_to_do(make_mixing):
    model = make_mixing()
    with pytest.warns(UserWarning, match="en.*1.*translations") as warned:
        model.predict(["Anna saw"] * 600)
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(["Anna saw"], language="en")  # The source's own inputs have nothing to be mixed with.
        model.predict(["Anna saw"], translations=["Anna"])
        list(model.predict_stream([]))


def test_a_stream_reads_both_sides_no_further_than_it_answers(make_mixing):
    read = {"inputs": 0, "translations": 0}

    def endless(side):
        for _ in count():
            read[side] += 1
            yield "Anna saw"

    answers = make_mixing().predict_stream(endless("inputs"), translations=endless("translations"))
    assert len(next(answers)) == 2
    assert read == {"inputs": GROUP_SIZE, "translations": GROUP_SIZE}


@pytest.mark.parametrize(
    ("inputs", "translations", "said"), [(5, 3, "3 translations for 5"), (3, 5, "5 translations for 3")]
)
def test_unequal_counts_are_both_named(make_mixing, inputs, translations, said):
    with pytest.raises(DataError, match=f"^translations: {said} inputs"):
        make_mixing().predict(["Anna"] * inputs, translations=["Anna"] * translations)


def test_what_is_no_translation_is_named_by_its_number(make_mixing):
    with pytest.raises(DataError, match=r"translation 1: .*'3'"):
        make_mixing().predict(["a", "b"], translations=["a", 3])
    with pytest.raises(DataError, match=r"input 0: .*'None'"):
        make_mixing().predict([None], translations=["a"])


def test_a_model_that_does_not_mix_refuses_translations(make_model):
    model = make_model()
    with pytest.raises(ConfigError, match=r"^translations: .*\(source-only\).*x-mixup"):
        model.predict(["Anna"], translations=["Anna"])
    with pytest.raises(ConfigError, match=r"^--translations: .*--translations"):
        predict_file(model, text_file("Anna\n"), PredictOptions(translations=text_file("Anna\n")))


def lines(values):
    return join_lines(" ".join(one) for one in values)


def lines_of_pairs(values):
    return join_lines("\t".join(one) for one in values)


def test_lines_of_a_file_are_mixed_with_lines_of_another(make_mixing, warnings_list):
    model, here, there = make_mixing(), VALUES["upos"]("de"), VALUES["upos"]("en")
    found = predict_text(model, lines(here), warnings_list, translations=text_file(lines(there), "en"))
    answers = model.predict(here, translations=there)
    assert [line.partition("\t")[2].split() for line in found.splitlines()] == [list(one) for one in answers]
    assert warnings_list == []


def conllu(values):
    rows = ("\t".join((str(place), word, *"_" * 8)) for one in values for place, word in enumerate(one, 1))
    blocks = iter(rows)
    return "".join(f"# sent\n{join_lines(next(blocks) for _ in one)}\n" for one in values)


def test_formats_need_not_be_the_same(make_mixing, warnings_list):
    model, here, there = make_mixing(), VALUES["upos"]("de"), VALUES["upos"]("en")
    expected = [list(one) for one in model.predict(here, translations=there)]
    objects = join_lines(json.dumps({"words": words}) for words in there)
    for others in (lines(there), conllu(there), objects):
        out = predict_text(model, conllu(here), warnings_list, translations=text_file(others, "en"))
        tags = [line.split("\t")[3] for line in out.splitlines() if line[:1].isdigit()]
        assert tags == [tag for one in expected for tag in one]


def test_headers_and_comments_stand_beside_nothing(make_mixing, warnings_list):
    model, here, there = make_mixing("nli"), VALUES["nli"]("de"), VALUES["nli"]("en")
    header = "sentence1\tsentence2\n"
    rows = [lines_of_pairs(values) for values in (here, there)]
    out = predict_text(model, header + rows[0], warnings_list, translations=text_file(rows[1], "en"))
    again = predict_text(model, rows[0], warnings_list, translations=text_file(header + rows[1], "en"))
    labels = model.predict(here, translations=there)
    for text in (out.split("\n", 1)[1], again):
        assert [line.split("\t")[-1] for line in text.splitlines()] == labels


def test_probabilities_of_pairs_are_means_over_both_sides(make_mixing, warnings_list):
    model, here, there = make_mixing("nli"), VALUES["nli"]("de"), VALUES["nli"]("en")
    how = {"translations": text_file(lines_of_pairs(there)), "scores": True, "as_json": True}
    found = [
        json.loads(line)
        for line in predict_text(model, lines_of_pairs(here), warnings_list, **how).splitlines()
    ]
    for one, scores in each(zip(found, score_values(model, here, there), strict=True)):
        assert list(one["scores"].values()) == pytest.approx(scores.exp().flatten().tolist(), abs=1e-5)
        assert sum(one["scores"].values()) == pytest.approx(1, abs=1e-5)


def test_an_empty_line_leaves_its_input_unmixed(make_mixing, warnings_list):
    model = make_mixing()
    out = predict_text(
        model, "Anna saw\n\nthe cat\n", warnings_list, translations=text_file("Anna saw\nx\n\n", "en")
    )
    assert [len(line.partition("\t")[2].split()) for line in out.splitlines()] == [2, 0, 2]
    assert len(warnings_list) == 1
    assert "1 of 2 inputs have none. They are predicted unmixed. Give translations" in warnings_list[0]


def test_a_file_of_another_length_is_refused_before_anything_is_predicted(make_mixing, warnings_list):
    model, how = (
        make_mixing(),
        PredictOptions(warn=warnings_list.append, translations=text_file("a\n\nb\n", "to.en")),
    )
    with pytest.raises(DataError, match=r"to.en: .*3.*4"):
        check_translations(model, text_file("a\nb\nc\nd\n"), how)
    broken = PredictOptions(translations=text_file("a\n"), translate=lambda texts: texts)
    with pytest.raises(ConfigError, match="--translations and --translator:"):
        check_translations(model, text_file("a\n"), broken)
    assert warnings_list == []


@pytest.mark.slow
def test_objects_carry_their_own_translations(make_mixing, warnings_list):
    for task, keys in (("upos", ["words"]), ("nli", ["text", "text_pair"]), ("qa", ["question", "context"])):
        model, here, there = make_mixing(task), VALUES[task]("de"), VALUES[task]("en")

        def body(value, keys=keys):
            return dict(zip(keys, [value] if len(keys) == 1 else value, strict=True))

        own = join_lines(
            json.dumps({**body(one), "translation": body(other)})
            for one, other in zip(here, there, strict=True)
        )
        apart = join_lines(json.dumps(body(one)) for one in here)
        beside = text_file(join_lines(json.dumps(body(one)) for one in there), "en")
        answers = [
            [line.get("labels", line.get("label", line.get("answer"))) for line in map(json.loads, out)]
            for out in (
                predict_text(model, own, warnings_list).splitlines(),
                predict_text(model, apart, warnings_list, translations=beside).splitlines(),
            )
        ]
        assert answers[0] == answers[1]
        assert warnings_list == []


def test_a_translation_that_is_no_object_of_its_kind_is_named_with_its_line(
    make_mixing, make_model, warnings_list
):
    wrong = '{"words": ["a"]}\n{"words": ["a"], "translation": "a"}\n'
    with pytest.raises(DataError, match=r"input:2: .*'a'"):
        predict_text(make_mixing(), wrong, warnings_list)
    with pytest.raises(DataError, match="input:1: translation:"):
        predict_text(make_mixing(), '{"words": ["a"], "translation": {"x": 1}}\n', warnings_list)
    assert predict_text(make_model(), wrong, warnings_list).count('"translation": "a"') == 1


def squad(ids, text):
    qas = [{"id": name, "question": "Anna?", "answers": []} for name in ids]
    return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": qas}]}]})


def test_questions_of_squad_are_matched_by_their_ids(make_mixing, warnings_list):
    model = make_mixing("qa")
    here, there = squad("abc", "happen slow " * 9), squad("cdb", "Anna Lee in Rome " * 9)
    how = {"format": "squad", "translations": text_file(there, "en.json")}
    found = json.loads(predict_text(model, here, warnings_list, **how))
    assert "1 of 3 inputs have none" in warnings_list[0]
    question, passage = "Anna?", "happen slow " * 9
    other = ("Anna?", "Anna Lee in Rome " * 9)
    with pytest.warns(UserWarning, match="1 of 3"):
        mixed = model.predict([(question, passage)] * 3, translations=[None, other, other])
    assert list(found.values()) == mixed
    strange = text_file(squad("xy", "Anna"), "en.json")
    with pytest.raises(DataError, match=r"en\.json: .*2"):
        predict_text(model, here, warnings_list, format="squad", translations=strange)


def as_translator(texts):
    return (Translated(" ".join(reversed(text.split()))) for text in texts)


def test_a_translator_on_the_way_is_as_a_file_of_its_translations(make_mixing, warnings_list):
    model, here = make_mixing(), [*VALUES["upos"]("de"), (), ("Anna",)]
    there = join_lines(one.text for one in as_translator(lines(here).splitlines()))
    assert predict_text(model, lines(here), warnings_list, translate=as_translator) == predict_text(
        model, lines(here), warnings_list, translations=text_file(there)
    )
    assert warnings_list == []


def test_a_translator_is_asked_no_further_than_it_is_needed(make_mixing):
    asked = []

    def noting(texts):
        for text in texts:
            asked.append(text)
            yield Translated(text)

    endless = File("stdin", lambda: (f"Anna saw {number}\n" for number in count()), lambda: "")
    next(predict_file(make_mixing(), endless, PredictOptions(translate=noting)))
    assert len(asked) == GROUP_SIZE


def test_a_translator_needs_to_know_its_languages_and_its_model(make_mixing, make_model, tmp_path):
    def get_refusal(name="seq2seq", model=None, **more):
        with pytest.raises(ConfigError) as error:
            input_translator(model or make_mixing(), name, **({"language": "sw", "folder": tmp_path} | more))
        return str(error.value)

    assert "--translator: no translator 'seqseq'. Did you mean 'seq2seq'" in get_refusal("seqseq")
    assert "--translator seq2seq" in get_refusal()
    assert "--model: translator built-in takes none" in get_refusal("built-in", translator_model="x")
    assert "--translator:" in get_refusal(language="")
    for code in ("en", "eng_Latn"):
        assert "en" in get_refusal(language=code)
    assert "(source-only)" in get_refusal(model=make_model())
    assert "names no source language" in get_refusal(model=make_mixing(source=()))


def test_built_in_languages_are_translated_on_the_way(make_mixing, tmp_path):
    model = make_mixing(source=("qaa",))
    translate = input_translator(model, "built-in", language="qab", folder=tmp_path)
    (found,) = translate(["gar zinormunil bimajen botonbon."])
    assert found.text.startswith("jado ")
    assert list(tmp_path.iterdir()) == []


# Mixed by word links


@pytest.fixture
def make_linking(make_mixing):
    """Make a model that mixes words with those that they are linked to."""

    def make(task="upos", **about):
        model = make_mixing(task, **about)
        return replace(model, mixup=replace(model.mixup, attends="links"))

    return make


def test_sentences_are_mixed_with_translations_that_have_links(make_linking):
    model, here, there = make_linking(), sentences("de", 12), link_words(sentences("en", 12))
    found = model.prepare(here, translations=there).scores(model.network)
    paired = model.prepare_by_id(here, there[::-1])
    assert all(map(torch.equal, found, paired.scores(model.network)))
    assert not all(map(torch.equal, found, model.prepare(here).scores(model.network)))
    assert model.predict(here, translations=there) == paired.predict(model.network)


def test_a_translator_that_knows_links_gives_them_on_the_way(make_linking, tmp_path, warnings_list):
    model = make_linking(source=("qaa",))
    written = [" ".join(one.words) for one in Sources().examples("ud", "qab", "dev", examples=5)]
    text = "".join(f"{line}\n" for line in written)
    translate = input_translator(model, "built-in", language="qab", folder=tmp_path)
    found = predict_text(model, text, warnings_list, translate=translate)
    examples = [
        TaggedSentence(id=str(n), words=tuple(line.split()), tags=()) for n, line in enumerate(written)
    ]
    there = list(translate_inputs(examples, translate))
    assert all(one.links for one in there)
    tags = model.predict(examples, translations=there)
    assert [line.split("\t")[1].split() for line in found.splitlines()] == list(map(list, tags))
    assert warnings_list == []


def test_translations_without_links_are_refused_with_what_to_do(make_linking, warnings_list, tmp_path):
    model, here, there = make_linking(), VALUES["upos"]("de"), VALUES["upos"]("en")
    file = text_file(lines(there))
    with pytest.raises(ConfigError, match=r"--translations: .*--translator built-in"):
        predict_text(model, lines(here), warnings_list, translations=file)
    with pytest.raises(ConfigError, match=r"--translator: .*seq2seq"):
        input_translator(model, "seq2seq", language="de", translator_model="x", folder=tmp_path)
    with pytest.raises(DataError, match=r"12.*TaggedSentence\.links"):
        model.predict(here, translations=there)
    with pytest.raises(DataError, match=r"1 translations.*links"):
        predict_text(model, '{"words": ["a"], "translation": {"words": ["b"]}}\n', warnings_list)
    with pytest.warns(UserWarning, match="predicted"):
        assert len(model.predict(here)) == len(here)
    options = EvaluateOptions(corpus="ud", languages=("qab",), inputs="paired")
    with pytest.raises(ConfigError, match="--inputs paired:"):
        check_evaluation(model, options, Sources())
