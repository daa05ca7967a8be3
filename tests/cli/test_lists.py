"""Lists name and describe the contents of the package without importing them."""

import subprocess
import sys

import pytest

from isogloss.aligners import ALIGNERS
from isogloss.cli.lists import LISTS, METHOD_TABLES
from isogloss.core.registry import Registry
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders import FAMILIES
from isogloss.tasks import ALL_TASKS
from isogloss.translators import TRANSLATORS

TABLES = {
    **METHOD_TABLES,
    "aligners": ALIGNERS,
    "diagnostics": DIAGNOSTICS,
    "encoders": FAMILIES,
    "tasks": ALL_TASKS,
    "translators": TRANSLATORS,
}
WITHOUT_TORCH = ("aligners", "claims", "diagnostics", "encoders", "methods", "tasks", "translators")


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_entry_has_the_name_of_its_object(table):
    assert {name: entry.name for name, entry in table.items()} == {name: name for name in table}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_entry_says_in_a_sentence_what_it_is(table):
    summaries = {name: table.read_summary(name) for name in table}
    assert {name: text for name, text in summaries.items() if not text.endswith((".", "?"))} == {}
    assert len(set(summaries.values())) == len(summaries)


def test_a_summary_read_from_source_is_the_docstring_of_the_class():
    for name, diagnostic in DIAGNOSTICS.items():
        first_text = " ".join((diagnostic.__doc__ or "").partition("\n\n")[0].split())
        assert DIAGNOSTICS.read_summary(name) == first_text.replace("``", "")
        assert DIAGNOSTICS.read_constant(name, "subject") == diagnostic.subject


def test_a_registry_imports_an_entry_when_it_is_looked_up():
    table = Registry({"there": "json:dumps", "absent": "no_such_module:part"})
    assert list(table) == ["there", "absent"] and "absent" in table and len(table) == 2
    assert table["there"]([1]) == "[1]"
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        table["absent"]
    with pytest.raises(KeyError, match="unknown"):
        table["unknown"]


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_a_list_imports_no_torch(name):
    program = (
        "import sys; from pathlib import Path; from isogloss.cli.lists import LISTS;"
        f"heads, rows = LISTS[{name!r}](Path());"
        "assert rows and {len(row) for row in rows} == {len(heads)};"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
    assert name in LISTS


def test_methods_say_where_a_recipe_names_them():
    heads, rows = LISTS["methods"](None)
    used_in = {row[0]: row[1] for row in rows}
    assert heads == ("method", "used in", "what")
    assert (used_in["bilingual"], used_in["lora"], used_in["procrustes"]) == (
        "[[grid.method]]",
        "peft",
        "[[adjust]]",
    )
