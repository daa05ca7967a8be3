"""The lists that are written down: they are what the tables of the package contain."""

from isogloss.cli.lists import LISTS, WRITTEN, packaged
from isogloss.cli.packaged_lists import as_text, packaged_lists


def test_written_lists_are_what_the_tables_contain():
    assert WRITTEN.read_text(encoding="utf-8") == as_text(), (
        "lists.json is not what the code says: run make docs"
    )


def test_each_written_list_can_be_printed():
    names = [*packaged_lists()]
    assert len(names) == 7
    for name in names:
        heads, rows = packaged(name)
        assert name in LISTS and rows and {len(row) for row in rows} == {len(heads)}


def test_methods_say_where_a_recipe_names_them():
    heads, rows = packaged("methods")
    used_in = {row[0]: row[1] for row in rows}
    assert heads == ["method", "used in", "what"]
    assert (used_in["bilingual"], used_in["lora"], used_in["procrustes"]) == (
        "[[grid.method]]",
        "peft",
        "[[adjust]]",
    )
