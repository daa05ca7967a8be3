"""Write SIB-200's topics with the machine translations of FLORES: `python make_files.py DATA OUT`.

DATA contains bible/, rawtext/, sib200/ and flores-mt/ (the evaluation folder of
github.com/mozilla/firefox-translations-models, with a sentence of FLORES devtest on each line). Topics are
joined by their text: OUT/topics/LANGUAGE/SPLIT.tsv, where LANGUAGE is a language, en-XX (English sentences
translated by the first system of each pair) or XX-en (sentences translated into English). OUT/topics-poor
contains the second system's translations, OUT/rawtext/LANGUAGE the text of DATA/rawtext and DATA/bible for
pretraining, and OUT/flores200 the sentences of FLORES dev in all twelve languages, to compare states.
"""

import csv
import gzip
import html
import lzma
import shutil
import sys
from pathlib import Path

CODES = {
    "en": "eng_Latn", "ar": "arb_Arab", "bg": "bul_Cyrl", "de": "deu_Latn", "el": "ell_Grek",
    "es": "spa_Latn", "fr": "fra_Latn", "hi": "hin_Deva", "ru": "rus_Cyrl", "tr": "tur_Latn",
    "vi": "vie_Latn", "zh": "zho_Hans",
}  # fmt: skip
SYSTEMS = {"topics": ("google", "nllb"), "topics-poor": ("opusmt", "bergamot-tiny", "nllb")}
"""The first that a direction has; Turkish into English is better by the second, as its SOURCE.md says."""

SPLITS = ("train", "dev", "test")


def lines(path: Path) -> list[str]:
    """Read a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


def topics(folder: Path, split: str) -> list[dict[str, str]]:
    """Read SIB-200's rows of a language."""
    with gzip.open(folder / f"{split}.tsv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    """Write rows in SIB-200's format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        dict_writer = csv.DictWriter(
            file, ("index_id", "category", "text"), delimiter="\t", lineterminator="\n"
        )
        dict_writer.writeheader()
        dict_writer.writerows(rows)


def read_translations(data: Path, first_part: str, second: str, systems: tuple[str, ...]) -> list[str]:
    """Read the translations by the first of these systems that there are."""
    folder = data / "flores-mt" / "mt" / f"{first_part}-{second}"
    paths = (folder / f"flores-test.{system}.{second}.gz" for system in systems)
    texts = lines(next(path for path in paths if path.is_file()))
    return [html.unescape(line) for line in texts]  # One system leaves &#39; in its output.


def raw_text(data: Path, out_folder: Path) -> None:
    """Copy raw text, and add the Bible's verses where there are any."""
    (table,) = (data / "bible").glob("*.tsv.xz")
    with lzma.open(table, "rt", encoding="utf-8", newline="") as file:
        verses = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for language in set(CODES) - {"bg", "el"}:  # which the corpus lacks
        folder = out_folder / "rawtext" / language
        folder.mkdir(parents=True, exist_ok=True)
        for path in (data / "rawtext" / language).iterdir():
            shutil.copyfile(path, folder / path.name)
        if any(row.get(language) for row in verses):
            text = "".join(f"{row[language]}\n" for row in verses if row[language])
            (folder / "bible.txt").write_text(text, encoding="utf-8")


def main(data: Path, path: Path) -> None:
    """Write all folders."""
    raw_text(data, path)
    (path / "flores200" / "dev").mkdir(parents=True, exist_ok=True)
    for language in CODES:
        text = "\n".join(lines(data / "flores-mt" / "ref" / f"flores-dev.{language}.gz"))
        (path / "flores200" / "dev" / f"{language}.dev").write_text(f"{text}\n", encoding="utf-8")
    numbers = {
        text: index for index, text in enumerate(lines(data / "flores-mt" / "ref" / "flores-test.en.gz"))
    }
    for corpus, systems in SYSTEMS.items():
        for split in SPLITS:
            english = topics(data / "sib200" / CODES["en"], split)
            numbers_by_id = {
                row["index_id"]: numbers[row["text"]] for row in english if row["text"] in numbers
            }
            for language, language_code in CODES.items():
                rows = [
                    row
                    for row in topics(data / "sib200" / language_code, split)
                    if row["index_id"] in numbers_by_id
                ]
                write(path / corpus / language / f"{split}.tsv", rows)
                if language == "en":
                    continue
                for name, ways in (
                    (f"en-{language}", ("en", language)),
                    (f"{language}-en", (language, "en")),
                ):
                    translations = read_translations(data, *ways, systems)
                    result = [row | {"text": translations[numbers_by_id[row["index_id"]]]} for row in rows]
                    write(path / corpus / name / f"{split}.tsv", result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
