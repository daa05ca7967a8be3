"""Starting points shared by several tests of methods."""

import pytest

from in_translation import setting
from isogloss.encoders.saving import save_model
from isogloss.methods.plain import SourceOnly


@pytest.fixture(scope="module")
def teacher(bert_folder, tmp_path_factory):
    """A source-only tagger's folder."""
    folder = tmp_path_factory.mktemp("teacher")
    training = SourceOnly().train(setting("upos", bert_folder, folder / "work", target=()))
    save_model(training.model, training.tokenizer, folder / "model")
    return folder / "model"
