"""Import everything that runs need, without passes of the garbage collector.

The process that forks the workers of ``--jobs`` imports this module and nothing else. Imports create a
million objects, none of them garbage. Later passes skip these objects too: in each worker they would read all
of them, and copy their pages.
It also imports the objects of the tables of methods, measurements, tables of recipes and training on text,
which features declare.
"""

import gc
from contextlib import suppress
from importlib import import_module

from isogloss.engine.fork_server import IMPORTED_ONCE


def import_everything() -> None:
    """Import what is installed of these modules, and exclude it from later passes."""
    gc.disable()
    try:
        from isogloss.diagnostics import DIAGNOSTICS
        from isogloss.methods import METHODS
        from isogloss.planning.recipe_tables import RECIPE_TABLES
        from isogloss.training.text_training import TEXT_TRAINING

        tables = (METHODS, DIAGNOSTICS, RECIPE_TABLES, TEXT_TRAINING)
        modules = [place.partition(":")[0] for table in tables for place in table.places.values()]
        for name in (*IMPORTED_ONCE, *modules):
            with suppress(ImportError):  # A worker whose run needs the module reports it.
                import_module(name)
    finally:
        gc.freeze()
        gc.enable()


import_everything()
