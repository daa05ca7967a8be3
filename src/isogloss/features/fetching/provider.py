"""Ways to get corpora that are absent: official files that are fetched, or datasets of the hub."""

from collections.abc import Sequence

from isogloss.core.errors import ConfigError


class OfficialFiles:
    """The official files of corpora, which ``isogloss fetch`` downloads."""

    def give_advice(self, corpus: str, language: str = "") -> str:
        """Return the advice for a corpus of the package with absent files."""
        option = f" --language {language.replace('-', ',')}" if language else ""
        return (
            f"Fetch it: isogloss fetch {corpus}{option} --to DATA, and give --data DATA; or use --data hub, "
            f"which fetches the files that are read."
        )

    def list_corpora(self, languages: Sequence[str]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        """List the corpora in some languages, with their licences and how to get them.

        Columns state whether a corpus has training data in all of the languages, and whether it is parallel.
        Raises ConfigError if no corpus can be fetched.
        """
        from isogloss.cli.lists import corpus_columns, shipped_columns
        from isogloss.data.corpora.catalogue import CORPORA
        from isogloss.data.corpora.own import list_shipped
        from isogloss.data.hub_splits import hub_splits
        from isogloss.features.fetching.releases import corpora_in, covers, fetchable, releases

        rows: list[Sequence[str]] = []
        names = [name for name in fetchable() if name in CORPORA or name in list_shipped()]
        hub = [entry for entry in hub_splits().values() if covers(entry.language, languages)]
        for name in names:
            splits = {entry.split for entry in hub if entry.corpus.name == name}
            is_official = name in corpora_in(languages)
            table = releases(name)
            ways = ["isogloss fetch"] if is_official else []
            if splits or (is_official and name not in CORPORA):
                ways.append("--data hub")
            if ways:
                kind, licence, _ = corpus_columns(CORPORA[name]) if name in CORPORA else shipped_columns(name)
                has_train = table.has_train(languages) or ("train" in splits and table.train is None)
                facts = ["yes" if fact else "no" for fact in (has_train, table.parallel)]
                rows.append((name, kind, *facts, ", ".join(ways), licence))
        if not rows:
            raise ConfigError(
                f"--language {' '.join(languages)}: no corpus can be fetched. Describe your own data "
                f"(docs/corpora.md), or see isogloss list corpora for corpora to download by hand."
            )
        return ("corpus", "tasks", "train", "parallel", "get it", "licence"), rows


OFFICIAL_FILES = OfficialFiles()
