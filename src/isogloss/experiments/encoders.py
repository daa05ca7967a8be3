"""Encoders that exist already: where the shipped one is, and a fingerprint that knows equal weights again."""

from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from isogloss.core.errors import ModelError
from isogloss.core.runs import Encoder, Pretrain, run_id

SHIPPED = "shipped"


def encoder_folder(source: str) -> str:
    """Return the folder or hub name of an encoder that exists already."""
    return str(files("isogloss") / "shipped") if source == SHIPPED else source


def fingerprint_of(source: str) -> str:
    """Return a fingerprint of an encoder's configuration, weights and tokenizer.

    A name on the hub is its own fingerprint: its files are not here yet.
    """
    folder = Path(encoder_folder(source))
    if not folder.is_dir():
        if source.startswith((".", "/", "~")) or "\\" in source:
            raise ModelError(
                f"encoder: there is no folder {source!r}. Give an existing folder or a hub name."
            )
        return ""
    digest = sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".json", ".safetensors", ".model", ".txt"}:
            digest.update(path.name.encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:16]


def encoder_label(encoder: Encoder) -> str:
    """Name an encoder in tables: its folder's or hub name, or how it was pretrained."""
    if isinstance(encoder, Pretrain):
        shape = encoder.architecture
        languages = "+".join(encoder.languages)
        return f"{shape.family} {shape.layers}x{shape.dim} on {languages} ({run_id(encoder)[:6]})"
    return Path(encoder.source).name or encoder.source
