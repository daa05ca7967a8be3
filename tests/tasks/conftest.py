"""The two kinds of tokenizer that tasks are tested with: with segments, and without."""

import pytest

from isogloss.encoders.tokenizers import load_tokenizer


@pytest.fixture(scope="session", params=["bert", "xlm_roberta"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="session")
def tokenizer(folder):
    return load_tokenizer(folder)
