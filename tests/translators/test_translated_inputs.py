"""A mixing model uses translations from a translator like translations from that translator's file."""

import pytest

from isogloss.data.files import byte_stream
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.using import Model, PredictOptions, predict_file
from isogloss.using.predicting import input_translator
from isogloss.using.provenance import Provenance

TEXTS = ["the cat sat .", "", "a dog ran over hills", "the cat sat ."] * 400


@pytest.fixture
def model(bert_folder):
    provenance = Provenance(
        run="x",
        title="x",
        task="upos",
        corpus="ud",
        method="x-mixup",
        encoder="tiny",
        source=("es",),
        target=("en",),
        limit=64,
        overlap=8,
        versions={},
    )
    network = TASKS["upos"].head(bert_folder, seed=0)
    mixup = Mixup(layer=2, ratio=1.0, learned=False)
    return Model(network, load_tokenizer(bert_folder), TASKS["upos"], provenance, "float32", mixup)


def as_file(texts):
    return byte_stream("texts", [f"{text}\n".encode() for text in texts])


@pytest.mark.slow
def test_sequence_to_sequence_models_translate_on_the_way(model, translate, marian_folder, tmp_path):
    way_translator = input_translator(
        model, "seq2seq", language="en", translator_model=str(marian_folder), folder=tmp_path / "work"
    )
    files = list(predict_file(model, as_file(TEXTS), PredictOptions(translate=way_translator)))
    known_texts = {text: item.text for text, item in zip(TEXTS, translate(TEXTS[:3]), strict=False)}
    beside = as_file(known_texts[text] for text in TEXTS)
    assert files == list(predict_file(model, as_file(TEXTS), PredictOptions(translations=beside)))
    assert [line.partition("\t")[0] for line in files] == TEXTS
    with pytest.warns(UserWarning, match="1"):
        assert files != list(predict_file(model, as_file(TEXTS), PredictOptions()))
