"""The Hugging Face hub as a source of data: corpora of the catalogue, described corpora and datasets."""

from collections.abc import Mapping
from pathlib import Path

from isogloss.core.untrusted import user_cache
from isogloss.data.corpus import Source
from isogloss.data.data_sources import HUB
from isogloss.data.files import DiskFolder, File


class Hub:
    """The hub, or a folder of parquet files of its datasets."""

    @property
    def records(self) -> Path:
        """Folder of the commits of datasets that were looked up."""
        return user_cache() / HUB / "commits"

    def open(self, path: str) -> Source:
        """Return the corpora of the hub, or those whose parquet files are in a folder."""
        from isogloss.features.fetching.hub_datasets import HubDatasets

        return HubDatasets(DiskFolder(Path(path)) if path else None)

    def find_spellings(self, corpus: str) -> Mapping[str, str]:
        """Return the codes of languages in the names of a corpus's official files, by our codes.

        Raises ConfigError if the corpus cannot be fetched.
        """
        from isogloss.features.fetching.releases import releases

        return releases(corpus).spelled

    def pin_commit(self, dataset: str) -> str:
        """Return a dataset with its commit. The commit of a branch is requested once."""
        from isogloss.features.fetching.hub_address import pin_commit

        return pin_commit(dataset, user_cache() / HUB)

    def open_split(self, dataset: str, path: str) -> File:
        """Return the rows of ``config/split`` of a dataset as a file that is generated when it is read."""
        from isogloss.features.fetching.hub_rows import hub_file

        return hub_file(dataset, path)


HUB_SOURCE = Hub()
