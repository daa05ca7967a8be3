"""States of parallel examples, in the form of their task, and with a translation in a mixing model."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from each import each
from in_translation import READ, link_words, sentences
from isogloss.core.errors import DataError, ModelError
from isogloss.encoders.loading import load_model
from isogloss.encoders.mixup import LearnedRatio, Mixup, mixing
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training.parallel_text import BitextSentences, ParallelExamples, example_rows
from isogloss.training.sides import RowPair, reversed_links, subword_links
from isogloss.training.states import StateOptions, sentence_states

WANTED = StateOptions(layers=(0, 1, 2, 3), limit=40, precision="float32")


def mixup(**changes):
    ratio = LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    return Mixup(layer=2, ratio_module=ratio, **changes)


@pytest.fixture(scope="module")
def loaded_encoder(bert_folder):
    return load_model(bert_folder), load_tokenizer(bert_folder)


@pytest.fixture(params=["nli", "upos", "qa"])
def text(request):
    """Return parallel examples of a task, optionally with translations."""
    read = READ[request.param]

    def parallel_examples(**changes):
        return ParallelExamples(task=TASKS[request.param], read=read, name="corpus dev", **changes)

    return parallel_examples


def states_of(text, loaded, language="de", count=24):
    return text.states(loaded, text.read(language)[:count], language, WANTED)


def test_examples_are_matched_by_their_ids(text):
    pairs = text().pairs("en", "de")
    assert pairs
    assert all(one.key == one.first.id == one.second.id for one in pairs)


def test_ids_that_do_not_match_are_refused(text):
    whole = text()
    read = whole.read
    apart = replace(
        whole,
        read=lambda code: [replace(one, id=f"{code}{one.id}") for one in read(code)],
    )
    with pytest.raises(DataError, match=r"en.*de:"):
        apart.pairs("en", "de")


def test_states_are_the_mean_over_subwords_that_are_not_special(text, loaded_encoder):
    model, tokenizer = loaded_encoder
    whole = text()
    found = states_of(whole, loaded_encoder, count=5)
    rows = example_rows(whole.task, whole.read("de")[:5], loaded_encoder, WANTED.limit)
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    for number, row in enumerate(each(rows)):
        with torch.inference_mode():
            every = model(**collate([row], padding=0).inputs(), output_hidden_states=True).hidden_states
        real = [place for place, one in enumerate(row.subwords) if one not in special]
        expected = torch.stack([layer[0, real].mean(dim=0) for layer in every])
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)


def test_states_that_are_no_numbers_are_an_error(text, loaded_encoder):
    """Each sentence would be its translation's nearest: no other compares as nearer than nan."""
    model, tokenizer = loaded_encoder
    broken = deepcopy(model)
    with torch.no_grad():
        next(broken.parameters())[:] = float("nan")
    with pytest.raises(ModelError, match="states"):
        states_of(text(), (broken, tokenizer))
    with pytest.raises(ModelError, match="states"):
        BitextSentences(lambda _: []).states((broken, tokenizer), ["a cat", "a dog"], "de", WANTED)


def test_plain_text_has_the_states_of_bitext(loaded_encoder):
    """Words are read as running text is, where spaces part them."""
    whole = ParallelExamples(task=TASKS["upos"], read=READ["upos"], name="x")
    lines = [" ".join(one.words) for one in whole.read("de")]
    expected = sentence_states(*loaded_encoder, lines, layers=WANTED.layers, limit=40, precision="float32")
    torch.testing.assert_close(states_of(whole, loaded_encoder), expected, atol=1e-5, rtol=1e-4)
    bitext = BitextSentences(lambda _: [])
    assert torch.equal(bitext.states(loaded_encoder, lines, "de", WANTED), expected)


@pytest.fixture(params=["nli", "upos"])
def parallel_case(request):
    read = READ[request.param]

    def paired_examples(mixup):
        return ParallelExamples(
            task=TASKS[request.param],
            read=read,
            name="corpus dev",
            translations=lambda language: read("en") if language != "en" else [],
            mixup=mixup,
            source="en",
        )

    return paired_examples


def test_with_a_largest_ratio_of_0_paired_states_are_the_unmixed_ones_to_the_bit(
    parallel_case, loaded_encoder
):
    alone = replace(parallel_case(mixup()), translations=None, mixup=None)
    assert torch.equal(
        states_of(parallel_case(mixup(ratio=0.0)), loaded_encoder), states_of(alone, loaded_encoder)
    )
    assert not torch.allclose(
        states_of(parallel_case(mixup()), loaded_encoder), states_of(alone, loaded_encoder), atol=1e-3
    )


def test_a_ratio_near_0_comes_near_the_unmixed_states(parallel_case, loaded_encoder):
    mix = mixup(ratio=1e-7, residual="summed", learned=False)
    alone = replace(parallel_case(mix), translations=None, mixup=None)
    torch.testing.assert_close(
        states_of(parallel_case(mix), loaded_encoder), states_of(alone, loaded_encoder), atol=1e-4, rtol=1e-3
    )


def test_paired_states_are_those_the_mixed_model_computes(parallel_case, loaded_encoder):
    model, tokenizer = loaded_encoder
    whole, mix = parallel_case(mixup()), mixup()
    found = states_of(whole, loaded_encoder, count=5)
    own, other = (example_rows(whole.task, whole.read(code)[:5], loaded_encoder, 40) for code in ("de", "en"))
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    for number, (row, partner) in enumerate(zip(own, other, strict=True)):
        batch = collate([partner, row], padding=tokenizer.pad_token_id)
        with torch.inference_mode(), mixing(model, mix, batch.mask):
            every = model(**batch.inputs(), output_hidden_states=True).hidden_states
        real = [place for place, one in enumerate(row.subwords) if one not in special]
        expected = torch.stack([layer[1, real].mean(dim=0) for layer in every])
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)


def test_below_the_layer_that_mixes_and_in_the_source_nothing_is_mixed(parallel_case, loaded_encoder):
    alone = replace(parallel_case(mixup()), translations=None, mixup=None)
    found, unmixed = states_of(parallel_case(mixup()), loaded_encoder), states_of(alone, loaded_encoder)
    torch.testing.assert_close(found[:2], unmixed[:2], atol=1e-5, rtol=1e-4)
    assert torch.equal(
        states_of(parallel_case(mixup()), loaded_encoder, "en"), states_of(alone, loaded_encoder, "en")
    )


def test_by_links_paired_states_are_those_the_mixed_model_computes(loaded_encoder):
    model, tokenizer = loaded_encoder
    there, mix = link_words(sentences("en", 5)), mixup(attends="links")
    there = [replace(one, links=one.links[1:]) for one in there]
    whole = ParallelExamples(
        task=TASKS["upos"],
        read=sentences,
        name="x",
        translations=lambda _: there,
        mixup=mix,
        source="en",
    )
    found = states_of(whole, loaded_encoder, count=5)
    own, other = (example_rows(whole.task, some, loaded_encoder, 40) for some in (sentences("de", 5), there))
    for number, (row, partner) in enumerate(zip(own, other, strict=True)):
        batch = collate([partner, row], padding=tokenizer.pad_token_id)
        width = batch.subwords.size(1)
        links = subword_links([RowPair(partner, row, reversed_links(partner.links))], width=width)
        with torch.inference_mode(), mixing(model, mix, batch.mask, links=links):
            every = model(**batch.inputs(), output_hidden_states=True).hidden_states
        expected = torch.stack([layer[1, 1 : len(row.subwords) - 1].mean(dim=0) for layer in every])
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)


def test_no_hook_remains(parallel_case, loaded_encoder):
    def hooks():
        return sum(len(part._forward_hooks) for part in loaded_encoder[0].modules())

    before = hooks()
    states_of(parallel_case(mixup()), loaded_encoder)
    assert hooks() == before


def test_an_example_without_a_translation_is_read_alone_and_told_of(parallel_case, loaded_encoder):
    said = []
    whole = parallel_case(mixup())
    translations = whole.translations
    some = replace(whole, translations=lambda code: translations(code)[3:], warn=said.append)
    alone = replace(whole, translations=None, mixup=None)
    some.pairs("en", "de")
    (warning,) = said
    assert warning.startswith("corpus dev de: 3 of 24 examples ") and " en " in warning
    found, every, unmixed = (states_of(one, loaded_encoder) for one in (some, whole, alone))
    torch.testing.assert_close(found[:, :3], unmixed[:, :3], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found[:, 3:], every[:, 3:], atol=1e-5, rtol=1e-4)
