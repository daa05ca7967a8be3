"""Tokens, keys and passwords are masked wherever they may be shown. Other words stay."""

import json
import traceback

import pytest

from isogloss.core.errors import MASK, DataError, mask_secrets, one_line
from isogloss.core.records import Record, write_record


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
        ("authorization: token s3cr3t", "s3cr3t"),
        ("https:/me:s3cr3t@host: no such folder", "s3cr3t"),
        ("s3://me:s3@cr3t@bucket/study", "cr3t"),
        ("https://me:pw@host", "pw"),
        ("https://s3cr3t0token@host/x", "s3cr3t0token"),
        ("https://host/x?a=1&token=s3cr3t: gone", "s3cr3t"),
    ],
)
def test_what_looks_like_a_secret_is_masked(text, secret):
    assert secret not in mask_secrets(text)
    assert MASK in mask_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "the subword token Mississippi is not known",
        "unknown token id 512345 in text",
        "basic understanding of tokens: [PAD], [UNK]",
        "max_tokens=1000000, tokenizer.json: cannot read",
        "http://127.0.0.1:5000/a:b, s3://bucket/study",
        "s3://bucket/study/a?b: no such key; C:/data/x, https://host:8080/path and x@y",
        "bert-base@0123456789abcdef, hf_quantizer, pad_token='[PAD]', key=3, me@example.org",
        "isogloss run study.toml --out s3://bucket/study --set grid.seeds=[0,1]",
        "expected a token: something",
    ],
)
def test_other_words_stay(text):
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "name",
    [
        *("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        *("WANDB_API_KEY", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "AZURE_STORAGE_KEY"),
    ],
)
def test_a_secret_of_the_environment_is_masked_whatever_it_looks_like(monkeypatch, name):
    monkeypatch.setenv(name, "just some words")
    assert one_line(ValueError("refused: just some words")) == f"ValueError: refused: {MASK}"


def test_the_path_of_a_file_of_secrets_is_none(monkeypatch, tmp_path):
    (tmp_path / "credentials").write_text("x")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    assert (
        mask_secrets(f"{tmp_path}/credentials: cannot be read") == f"{tmp_path}/credentials: cannot be read"
    )


def test_a_stored_token_that_cannot_be_read_hides_no_error(monkeypatch):
    import huggingface_hub

    def unreadable():
        raise PermissionError("no")

    monkeypatch.setattr(huggingface_hub, "get_token", unreadable)
    assert one_line(ValueError("what there is to say")) == "ValueError: what there is to say"


def test_the_stored_token_of_the_hub_is_masked(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "s3cr3t")
    assert mask_secrets("who said s3cr3t?") == f"who said {MASK}?"


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "part",
    ["x", "a.", "a:/", "token", "token=", "bearer ", "?a-", "authorization: ", "http://a", "hf_", "passwd= "],
)
def test_no_message_takes_long_to_mask(part):
    """A quadratic expression takes hours for these."""
    text = part * 100_000
    mask_secrets(text)
    assert mask_secrets(f"{text} hf_SECRETTOKEN123").endswith(MASK)


def test_errors_on_purpose_hold_no_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "just some words")
    error = DataError("https://me:passw0rd@host: just some words")
    assert str(error) == f"https://{MASK}@host: {MASK}"
    assert "passw0rd" not in "".join(traceback.format_exception(error))


def test_warnings_of_records_hold_no_secrets(tmp_path):
    warnings = ("mlflow could not be written to (https://me:s3cr3t@host)",)
    write_record(tmp_path, Record(id="0", kind="k", title="t", run={}, warnings=warnings))
    body = json.loads((tmp_path / "record.json").read_text())
    assert body["warnings"] == [f"mlflow could not be written to (https://{MASK}@host)"]


def test_the_bytes_of_a_record_do_not_depend_on_the_environment(tmp_path, monkeypatch):
    record = Record(id="0", kind="k", title="t", run={}, warnings=("training took long",))
    write_record(tmp_path / "a", record)
    monkeypatch.setenv("MY_TOKEN", "training")
    write_record(tmp_path / "b", record)
    assert (tmp_path / "a" / "record.json").read_bytes() == (tmp_path / "b" / "record.json").read_bytes()
