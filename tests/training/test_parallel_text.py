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


def states_of(text, loaded_model, language="de", count=24):
    return text.states(loaded_model, text.read(language)[:count], language, WANTED)


def test_examples_are_matched_by_their_ids(text):
    pairs = text().pairs("en", "de")
    assert pairs
    assert all(pair.key == pair.first.id == pair.second.id for pair in pairs)


def test_ids_that_do_not_match_are_refused(text):
    whole_parallel_examples = text()
    read = whole_parallel_examples.read
    distance = replace(
        whole_parallel_examples,
        read=lambda language: [replace(example, id=f"{language}{example.id}") for example in read(language)],
    )
    with pytest.raises(DataError, match=r"en.*de:"):
        distance.pairs("en", "de")


def test_states_are_the_mean_over_subwords_that_are_not_special(text, loaded_encoder):
    model, tokenizer = loaded_encoder
    whole_parallel_examples = text()
    states = states_of(whole_parallel_examples, loaded_encoder, count=5)
    rows = example_rows(
        whole_parallel_examples.task, whole_parallel_examples.read("de")[:5], loaded_encoder, WANTED.limit
    )
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    for index, row in enumerate(each(rows)):
        with torch.inference_mode():
            hidden_states = model(
                **collate([row], padding=0).inputs(), output_hidden_states=True
            ).hidden_states
        real_places = [place for place, subword in enumerate(row.subwords) if subword not in special]
        expected = torch.stack([layer[0, real_places].mean(dim=0) for layer in hidden_states])
        torch.testing.assert_close(states[:, index], expected, atol=1e-5, rtol=1e-4)


def test_states_that_are_no_numbers_are_an_error(text, loaded_encoder):
    """Each sentence would be its translation's nearest: no other compares as nearer than nan."""
    model, tokenizer = loaded_encoder
    broken_model = deepcopy(model)
    with torch.no_grad():
        next(broken_model.parameters())[:] = float("nan")
    with pytest.raises(ModelError, match="states"):
        states_of(text(), (broken_model, tokenizer))
    with pytest.raises(ModelError, match="states"):
        BitextSentences(lambda _: []).states((broken_model, tokenizer), ["a cat", "a dog"], "de", WANTED)


def test_plain_text_has_the_states_of_bitext(loaded_encoder):
    """Words are read as running text is, where spaces part them."""
    whole_parallel_examples = ParallelExamples(task=TASKS["upos"], read=READ["upos"], name="x")
    lines = [" ".join(example.words) for example in whole_parallel_examples.read("de")]
    expected = sentence_states(*loaded_encoder, lines, layers=WANTED.layers, limit=40, precision="float32")
    torch.testing.assert_close(
        states_of(whole_parallel_examples, loaded_encoder), expected, atol=1e-5, rtol=1e-4
    )
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
    single_parallel_examples = replace(parallel_case(mixup()), translations=None, mixup=None)
    assert torch.equal(
        states_of(parallel_case(mixup(ratio=0.0)), loaded_encoder),
        states_of(single_parallel_examples, loaded_encoder),
    )
    assert not torch.allclose(
        states_of(parallel_case(mixup()), loaded_encoder),
        states_of(single_parallel_examples, loaded_encoder),
        atol=1e-3,
    )


def test_a_ratio_near_0_comes_near_the_unmixed_states(parallel_case, loaded_encoder):
    mix = mixup(ratio=1e-7, residual="summed", learned=False)
    single_parallel_examples = replace(parallel_case(mix), translations=None, mixup=None)
    torch.testing.assert_close(
        states_of(parallel_case(mix), loaded_encoder),
        states_of(single_parallel_examples, loaded_encoder),
        atol=1e-4,
        rtol=1e-3,
    )


def test_paired_states_are_those_the_mixed_model_computes(parallel_case, loaded_encoder):
    model, tokenizer = loaded_encoder
    whole_parallel_examples = parallel_case(mixup())
    mix = mixup()
    states = states_of(whole_parallel_examples, loaded_encoder, count=5)
    own_example_rows, other_example_rows = (
        example_rows(
            whole_parallel_examples.task, whole_parallel_examples.read(language)[:5], loaded_encoder, 40
        )
        for language in ("de", "en")
    )
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
    for index, (row, partner) in enumerate(zip(own_example_rows, other_example_rows, strict=True)):
        batch = collate([partner, row], padding=tokenizer.pad_token_id)
        with torch.inference_mode(), mixing(model, mix, batch.mask):
            hidden_states = model(**batch.inputs(), output_hidden_states=True).hidden_states
        real_places = [place for place, subword in enumerate(row.subwords) if subword not in special]
        expected = torch.stack([layer[1, real_places].mean(dim=0) for layer in hidden_states])
        torch.testing.assert_close(states[:, index], expected, atol=1e-5, rtol=1e-4)


def test_below_the_layer_that_mixes_and_in_the_source_nothing_is_mixed(parallel_case, loaded_encoder):
    single_parallel_examples = replace(parallel_case(mixup()), translations=None, mixup=None)
    states = states_of(parallel_case(mixup()), loaded_encoder)
    unmixed_states = states_of(single_parallel_examples, loaded_encoder)
    torch.testing.assert_close(states[:2], unmixed_states[:2], atol=1e-5, rtol=1e-4)
    assert torch.equal(
        states_of(parallel_case(mixup()), loaded_encoder, "en"),
        states_of(single_parallel_examples, loaded_encoder, "en"),
    )


def test_by_links_paired_states_are_those_the_mixed_model_computes(loaded_encoder):
    model, tokenizer = loaded_encoder
    words = link_words(sentences("en", 5))
    mix = mixup(attends="links")
    words = [replace(word, links=word.links[1:]) for word in words]
    whole_parallel_examples = ParallelExamples(
        task=TASKS["upos"],
        read=sentences,
        name="x",
        translations=lambda _: words,
        mixup=mix,
        source="en",
    )
    states = states_of(whole_parallel_examples, loaded_encoder, count=5)
    own_example_rows, other_example_rows = (
        example_rows(whole_parallel_examples.task, items, loaded_encoder, 40)
        for items in (sentences("de", 5), words)
    )
    for index, (row, partner) in enumerate(zip(own_example_rows, other_example_rows, strict=True)):
        batch = collate([partner, row], padding=tokenizer.pad_token_id)
        width = batch.subwords.size(1)
        links = subword_links([RowPair(partner, row, reversed_links(partner.links))], width=width)
        with torch.inference_mode(), mixing(model, mix, batch.mask, links=links):
            hidden_states = model(**batch.inputs(), output_hidden_states=True).hidden_states
        expected = torch.stack([layer[1, 1 : len(row.subwords) - 1].mean(dim=0) for layer in hidden_states])
        torch.testing.assert_close(states[:, index], expected, atol=1e-5, rtol=1e-4)


def test_no_hook_remains(parallel_case, loaded_encoder):
    def hooks():
        return sum(len(part._forward_hooks) for part in loaded_encoder[0].modules())

    hooks_before = hooks()
    states_of(parallel_case(mixup()), loaded_encoder)
    assert hooks() == hooks_before


def test_an_example_without_a_translation_is_read_alone_and_told_of(parallel_case, loaded_encoder):
    message = []
    whole_parallel_examples = parallel_case(mixup())
    translations = whole_parallel_examples.translations
    items = replace(
        whole_parallel_examples, translations=lambda language: translations(language)[3:], warn=message.append
    )
    single_result = replace(whole_parallel_examples, translations=None, mixup=None)
    items.pairs("en", "de")
    (warning,) = message
    assert warning.startswith("corpus dev de: 3 of 24 examples ") and " en " in warning
    states, interval, unmixed_states = (
        states_of(item, loaded_encoder) for item in (items, whole_parallel_examples, single_result)
    )
    torch.testing.assert_close(states[:, :3], unmixed_states[:, :3], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(states[:, 3:], interval[:, 3:], atol=1e-5, rtol=1e-4)
