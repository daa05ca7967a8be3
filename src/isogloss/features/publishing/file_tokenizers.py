"""Tokenizers of exported models, read by the library ``tokenizers``: torch and transformers are not loaded.

An export writes ``tokenizer.json`` as isogloss uses it, so no other file of a tokenizer is read.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.core.errors import ModelError, one_line
from isogloss.core.untrusted import parse_json, read_regular

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

SPECIAL_TOKENS = ("pad_token", "unk_token", "cls_token", "sep_token")


class Encodings(dict[str, Any]):
    """Ids, segments and offsets of texts under transformers' names, with the library's encodings."""

    def __init__(self, encodings: "Sequence[Encoding]", values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.encodings = encodings


class FileTokenizer:
    """A ``tokenizer.json`` with the interface of transformers' tokenizers, as far as isogloss uses it."""

    def __init__(self, backend: "Tokenizer", config: Mapping[str, Any], name: str) -> None:
        """Take a tokenizer of the library, the content of its tokenizer_config.json, and its folder."""
        self._backend = backend
        self._truncation_side = str(config.get("truncation_side", "right"))
        self.name_or_path = name
        self.model_max_length = int(config["model_max_length"])
        self.model_input_names = list(config["model_input_names"])
        for token in SPECIAL_TOKENS:
            setattr(self, f"{token}_id", self._id_of(config.get(token)))

    def _id_of(self, token: object) -> int | None:
        content = token["content"] if isinstance(token, dict) else token
        return None if content is None else self._backend.token_to_id(str(content))

    def __call__(
        self,
        texts: Any,
        pairs: Any = None,
        *,
        is_split_into_words: bool = False,
        add_special_tokens: bool = True,
        truncation: bool | str = False,
        max_length: int | None = None,
        **_: object,
    ) -> Encodings:
        """Encode a text, texts or pairs of texts, as a tokenizer of transformers does, without padding."""
        is_batch = not isinstance(texts, str)
        if is_split_into_words:
            is_batch = bool(texts) and not isinstance(texts[0], str)
        batch = texts if is_batch else [texts]
        inputs = batch if pairs is None else list(zip(batch, pairs, strict=True))
        if truncation:
            self._backend.enable_truncation(
                max_length or self.model_max_length, direction=self._truncation_side
            )
        else:
            self._backend.no_truncation()
        encodings = self._backend.encode_batch(
            inputs, is_pretokenized=is_split_into_words, add_special_tokens=add_special_tokens
        )
        columns: dict[str, list[Any]] = {
            "input_ids": [encoding.ids for encoding in encodings],
            "offset_mapping": [encoding.offsets for encoding in encodings],
        }
        if "token_type_ids" in self.model_input_names:
            columns["token_type_ids"] = [encoding.type_ids for encoding in encodings]
        values = columns if is_batch else {name: column[0] for name, column in columns.items()}
        return Encodings(encodings, values)


def read_tokenizer(folder: Path) -> FileTokenizer:
    """Read the tokenizer of an exported model. Raises ModelError for files that are not one."""
    from tokenizers import Tokenizer

    try:
        config = parse_json(read_regular(folder / "tokenizer_config.json"), finite=False)
        backend = Tokenizer.from_file(str(folder / "tokenizer.json"))
        backend.no_padding()
        return FileTokenizer(backend, config, str(folder))
    except Exception as error:  # The library raises Exception itself.
        raise ModelError(
            f"{folder}: its tokenizer cannot be read ({one_line(error)}). Export the model again."
        ) from error
