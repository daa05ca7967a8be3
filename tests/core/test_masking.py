"""No secret stays in what is said or written, whatever server or library said it."""

import json
import traceback

import pytest

from isogloss.core.errors import DataError, one_line
from isogloss.core.masking import masked
from isogloss.core.records import Record, write_record

SECRETS = (
    ("500: bad token Bearer s3cr3t.x/y+z=", "s3cr3t"),
    ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNl"),
    ("authorization: token s3cr3t", "s3cr3t"),
    ("no answer from https://me:s3cr3t@host/x?y=1", "s3cr3t"),
    ("https:/me:s3cr3t@host: no such folder", "s3cr3t"),
    ("s3://me:s3@cr3t@bucket/study", "cr3t"),
    ("GET https://host/x?X-Amz-Signature=s3cr3t&n=1 failed", "s3cr3t"),
    ("https://host/x?a=1&token=s3cr3t: gone", "s3cr3t"),
    ("?X-Amz-Credential=AKS3CR3T/20261127", "S3CR3T"),
    ("hf_AbCdEfGhIjKlMnOp is not valid", "AbCd"),
    ("InvalidAccessKeyId: AKIAIOSFODNN7EXAMPLE", "IOSFODNN"),
)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_what_has_the_form_of_a_secret_is_masked(text, secret):
    assert secret not in masked(text)
    assert "***" in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "bert-base@0123456789abcdef, hf_quantizer, pad_token='[PAD]', key=3, me@example.org",
        "s3://bucket/study/a?b: no such key; C:/data/x, https://host:8080/path and x@y",
        "isogloss run study.toml --out s3://bucket/study --set grid.seeds=[0,1]",
    ],
)
def test_ordinary_text_stays_as_it_is(text):
    assert masked(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "WANDB_API_KEY",
        "MLFLOW_TRACKING_PASSWORD",
        "MLFLOW_TRACKING_TOKEN",
        "AZURE_STORAGE_KEY",
    ],
)
def test_what_this_process_knows_is_masked_wherever_it_stands(monkeypatch, name):
    monkeypatch.setenv(name, "open sesame")
    assert masked("who said open sesame?") == "who said ***?"


def test_the_stored_token_of_the_hub_is_masked(monkeypatch, tmp_path):
    (tmp_path / "token").write_text("of-my-own-hub\n")
    monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert masked("no of-my-own-hub here") == "no *** here"


def test_errors_hold_no_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "s3cr3t")
    assert one_line(ValueError("what is\ns3cr3t?")) == "ValueError: what is ***?"
    error = DataError("https://me:pass@host: s3cr3t")
    assert str(error) == "https://***@host: ***"
    assert "s3cr3t" not in "".join(traceback.format_exception(error))


def test_warnings_of_records_hold_no_secrets(tmp_path):
    warnings = ("mlflow could not be written to (https://me:s3cr3t@host)",)
    write_record(tmp_path, Record(id="0", kind="k", title="t", run={}, warnings=warnings))
    body = json.loads((tmp_path / "record.json").read_text())
    assert body["warnings"] == ["mlflow could not be written to (https://***@host)"]
