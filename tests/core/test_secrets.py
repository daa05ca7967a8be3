"""Tokens, keys and passwords are masked wherever they may be shown; other words stay."""

import pytest

from isogloss.core.errors import one_line
from isogloss.core.secrets import MASK, masked


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("500: bad token Bearer hf_SECRETTOKEN123", "hf_SECRETTOKEN123"),
        ("{'Authorization': 'Bearer abcdef.ghijkl'}", "abcdef.ghijkl"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("https://user:passw0rd1@host/x", "passw0rd1"),
        ("GET /k?X-Amz-Signature=abcdef123456&x=1", "abcdef123456"),
        ("?X-Amz-Credential=AKIAIOSFODNN7EXAMPLE/2026", "AKIAIOSFODNN7EXAMPLE"),
        ("the key AKIAIOSFODNN7EXAMPLE is not known", "AKIAIOSFODNN7EXAMPLE"),
        ('{"access_token": "abcdefgh1"}', "abcdefgh1"),
        ("password=letmein", "letmein"),
        ("api_key=12345678", "12345678"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text, secret):
    assert secret not in masked(text)
    assert MASK in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "the subword token Mississippi is not known",
        "unknown token id 512345 in text",
        "basic understanding of tokens: [PAD], [UNK]",
        "max_tokens=1000000, tokenizer.json: cannot read",
        "http://127.0.0.1:5000/a:b, s3://bucket/study",
        "expected a token: something",
    ],
)
def test_other_words_stay(text):
    assert masked(text) == text


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "MLFLOW_TRACKING_PASSWORD"]
)
def test_a_secret_of_the_environment_is_masked_whatever_it_looks_like(monkeypatch, name):
    monkeypatch.setenv(name, "just some words")
    assert one_line(ValueError("refused: just some words")) == f"ValueError: refused: {MASK}"


def test_the_path_of_a_file_of_secrets_is_none(monkeypatch, tmp_path):
    (tmp_path / "credentials").write_text("x")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    assert masked(f"{tmp_path}/credentials: cannot be read") == f"{tmp_path}/credentials: cannot be read"
