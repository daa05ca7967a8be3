"""Features of isogloss: folders that add entries to its tables, as packages outside do.

Each folder declares its entries in ``feature.toml`` (``core.registry``). No other module names a feature.
Without its folder, everything else works.
"""
