"""The encoder that most measurements are tried on."""

import pytest

from measuring import load


@pytest.fixture(scope="module")
def loaded_encoder(bert_folder):
    """A tiny BERT, and its tokenizer. Nothing may change it."""
    return load(bert_folder)
