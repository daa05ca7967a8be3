"""Exporting the encoder of a pretraining or an adjustment: for transformers and sentence-transformers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError
from isogloss.core.languages import is_built_in
from isogloss.core.records import RECORD, Record, read_made, read_record
from isogloss.core.untrusted import from_home
from isogloss.encoders import sentence_part_files
from isogloss.encoders.added.active_language import language_maps_of
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.added.module_files import MAPS_FILE, MODULES_FILE
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.loading import load_whole
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.publishing.adapters import AdapterExport, write_adapters
from isogloss.features.publishing.exporting import (
    CARD,
    bcp_47,
    check_free,
    refuse_links,
    render_template,
    write_model,
)
from isogloss.using.provenance import check_undamaged, encoder_text, find_run_folder, links_in

ENCODERS = ("pretrain", "adjust")
"""The kinds of runs that make an encoder."""

SENTENCES = "sentence-transformers"
POOLING = "1_Pooling"
PARTS = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": POOLING, "type": "sentence_transformers.models.Pooling"},
]
"""Modules of sentence-transformers: the encoder, then the mean of its states."""


@dataclass(frozen=True)
class PretrainedEncoder:
    """The encoder that a run made, with the record of the run."""

    network: Model
    tokenizer: Tokenizer
    record: Record
    versions: Mapping[str, str]
    folder: Path
    links: tuple[str, ...]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of its last training, real or built-in."""
        run = self.record.run
        pairs = (bitext["languages"].split("-") for bitext in run.get("aligned", ()))
        return tuple(dict.fromkeys(run.get("languages") or (language for pair in pairs for language in pair)))

    @property
    def base(self) -> str:
        """The encoder that the first training began with, as text. "" for a new encoder."""
        run: Mapping[str, Any] | None = self.record.run
        while run is not None and "source" not in run:
            run = run.get("start") or run.get("encoder")
        return encoder_text(run) if run else ""

    @property
    def base_of_adapters(self) -> str:
        """The encoder of the hub that only the adapters of its languages were trained on, or ""."""
        start = self.record.run.get("start", {})
        has_adapters = self.record.run.get("trained") == "modules" and "source" in start
        return self.base if has_adapters and not start.get("data") else ""

    @property
    def longest(self) -> int:
        """Subwords of its longest text."""
        return int(self.tokenizer.model_max_length)


def encoder_of_run(folder: Path) -> PretrainedEncoder | None:
    """Load the encoder that the run in a folder made. None for any other folder."""
    if (
        not (folder / RECORD).exists()
        or (record := read_record(find_run_folder(folder))).kind not in ENCODERS
    ):
        return None
    check_undamaged(find_run_folder(folder))
    weights = folder / "model"
    versions = read_made(folder).versions
    return PretrainedEncoder(
        load_whole(weights), load_tokenizer(weights), record, versions, weights, links_in(weights)
    )


def export_encoder(
    encoder: PretrainedEncoder,
    folder: Path,
    *,
    onnx: bool = False,
    int8: bool = False,
    adapter: bool = False,
    force: bool = False,
    data: str = "",  # noqa: ARG001 (as a model's)
) -> Path:
    """Write an encoder to a folder, completely or not at all, and return the folder.

    ``adapter`` writes only the adapters of its languages. StorageError as for a fine-tuned model;
    ConfigError for an ONNX file.
    """
    if onnx or int8:
        raise ConfigError(
            "--onnx: this is an encoder without a head, and an ONNX file needs one. Remove --onnx."
        )
    refuse_links(encoder.links)
    folder = from_home(folder).resolve()
    check_free(folder, force=force)
    adapters = None
    with atomic_folder(folder.parent, folder.name) as temporary:
        if adapter:
            adapters = write_adapters(encoder.network, temporary, encoder.folder, encoder.base_of_adapters)
        else:
            write_model(encoder.network, encoder.tokenizer, temporary, encoder.longest)
            _describe_sentences(temporary, encoder)
        (temporary / CARD).write_text(encoder_card(encoder, adapters=adapters), encoding="utf-8")
    return folder


def _describe_sentences(folder: Path, encoder: PretrainedEncoder) -> None:
    """Write how sentence-transformers makes a vector of a text."""
    dim = encoder.network.config.hidden_size
    (folder / POOLING).mkdir()
    for name, body in {
        sentence_part_files.PARTS: PARTS,
        sentence_part_files.SETTINGS: {"max_seq_length": encoder.longest, "do_lower_case": False},
        f"{POOLING}/config.json": {"word_embedding_dimension": dim, "pooling_mode_mean_tokens": True},
    }.items():
        (folder / name).write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")


def encoder_card(
    encoder: PretrainedEncoder, *, address: str = "FOLDER", adapters: AdapterExport | None = None
) -> str:
    """Return the card of an encoder: how it was trained, and how to load it from an ``address``."""
    from huggingface_hub import ModelCardData

    languages, base = encoder.languages, encoder.base
    front_matter = ModelCardData(
        base_model=base.partition("@")[0] if "/" in base else None,
        language=[bcp_47(language) for language in languages if not is_built_in(language)] or None,
        library_name=adapters.library if adapters else SENTENCES,
        license="apache-2.0" if languages and all(is_built_in(name) for name in languages) else None,
        pipeline_tag=None if adapters else "sentence-similarity",
        tags=["isogloss", "cross-lingual-transfer"],
    )
    return render_template(
        "encoder_card.md.j2",
        front_matter=front_matter.to_yaml(),
        record=encoder.record,
        encoder=encoder_text(encoder.record.run),
        base=base,
        languages=languages,
        longest=encoder.longest,
        versions=encoder.versions,
        address=address,
        adapters=adapters,
        maps=language_maps_of(encoder.network),
        maps_file=MAPS_FILE,
        modules=modules_of(encoder.network),
        modules_file=MODULES_FILE,
    )
