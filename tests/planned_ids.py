"""The runs of all packaged recipes at all scales: how many, and a digest of their ids in order.

`python tests/planned_ids.py` writes them anew where a change is meant; the changelog says which and why.
"""

import json
import tomllib
from hashlib import sha256
from pathlib import Path

from isogloss.core.identity import identity
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe_text import packaged_recipes, recipe_text

FILE = Path(__file__).with_suffix(".json")


def planned(name: str) -> dict[str, str]:
    """Return number and digest of a recipe's runs, by scale; the empty one is the recipe as it is."""
    scales = ["", *tomllib.loads(recipe_text(name)[0]).get("scale", {})]
    ids = {
        scale: [identity(run) for run in plan_recipe(name, scale=scale, assume=True).runs] for scale in scales
    }
    return {
        scale: f"{len(one)} {sha256(chr(10).join(one).encode()).hexdigest()[:16]}"
        for scale, one in ids.items()
    }


if __name__ == "__main__":
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = True
    FILE.write_text(json.dumps({name: planned(name) for name in packaged_recipes()}, indent=1) + "\n")
