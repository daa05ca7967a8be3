"""Rows of parquet files, and the names of labels that are stored as numbers."""

import json
from collections.abc import Iterator
from typing import Any

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.files import File


def parquet_rows(file: File) -> tuple[dict[str, list[str]], Iterator[dict[str, Any]]]:
    """Return the names of labels stored as numbers, by column, and the rows of a parquet file.

    The library datasets writes the names into the file. Raises DataError for a damaged file, and ConfigError
    without pyarrow.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigError(
            f"{file.name}: parquet is read with the package pyarrow, which is not installed. Install it "
            f'(pip install "isogloss[hub]").'
        ) from error
    parquet_errors = (ArrowException, OSError, UnicodeDecodeError)

    def damage_error(error: Exception) -> DataError:
        return DataError(
            f"{file.name}: this is not a parquet file, or a damaged one ({error}). Fetch it again."
        )

    def bodies() -> Iterator[dict[str, Any]]:
        try:
            for batch in parquet.iter_batches():
                yield from batch.to_pylist()
        except parquet_errors as error:
            raise damage_error(error) from error

    try:
        parquet = ParquetFile(file.name)
    except parquet_errors as error:
        raise damage_error(error) from error
    metadata = json.loads((parquet.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    features = metadata.get("info", {}).get("features", {})
    kinds = {column: kind.get("feature", kind) for column, kind in features.items() if isinstance(kind, dict)}
    classes = {
        column: list(kind["names"])
        for column, kind in kinds.items()
        if isinstance(kind, dict) and kind.get("_type") == "ClassLabel"
    }
    return classes, bodies()
