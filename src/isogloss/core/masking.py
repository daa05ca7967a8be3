"""Secrets in texts of others (errors of servers and libraries, URLs): masked before anybody sees them."""

import os
import re
from functools import cache
from pathlib import Path

MASK = "***"

SECRET_NAME = re.compile(r"(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSPHRASE|KEY|CONNECTION_STRING)$")
"""Names of environment variables that hold a secret, as HF_TOKEN and AWS_SECRET_ACCESS_KEY do."""

SHORTEST = 6
"""Letters of a value that is masked: shorter ones are parts of ordinary words."""

FORMS = (
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.-]+:/{1,2})[^/\s'\"]+(?=@)"), rf"\1{MASK}"),
    (
        re.compile(r"(?i)(\bauthorization\b['\"]?\s*[:=]\s*['\"]?|\bbearer\s+)[^'\",;()\[\]{}<>\r\n]+"),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"(?i)([?&][\w.-]*(?:signature|sig|token|secret|password|passwd|key|credential|auth)[\w.-]*=)[^&\s'\"<>]+"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"\bhf_[A-Za-z0-9]{10,}"), MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"), MASK),
)
"""What a secret looks like: user and password in a URL, headers, signed queries, tokens of a known form."""


def masked(text: str) -> str:
    """Return a text without secrets: what has the form of one, and those that this process knows."""
    for form, instead in FORMS:
        text = form.sub(instead, text)
    known = (value for name, value in os.environ.items() if SECRET_NAME.search(name))
    for value in sorted({*known, _stored_token(_token_path())}, key=len, reverse=True):
        if len(value) >= SHORTEST:
            text = text.replace(value, MASK)
    return text


def _token_path() -> Path:
    """Return where the hub's client keeps the token of ``hf auth login``."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.environ.get("HF_TOKEN_PATH") or Path(os.environ.get("HF_HOME") or home, "token"))


@cache
def _stored_token(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError, RuntimeError):
        return ""
