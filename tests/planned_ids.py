"""The runs of all packaged recipes at all scales: how many, and a digest of their ids in order.

`python tests/planned_ids.py` updates them after an intended change, which the changelog explains.
"""

import json
import tomllib
from hashlib import sha256
from pathlib import Path

from isogloss.core.identity import identity
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.recipes.recipe_text import packaged_recipes, recipe_text

FILE = Path(__file__).with_suffix(".json")


def plans(name: str) -> dict[str, Planned]:
    """Return a recipe's plans by scale. The empty one is the recipe as it is."""
    scales = ["", *tomllib.loads(recipe_text(name)[0]).get("scale", {})]
    return {scale: plan_recipe(name, scale=scale, assume=True) for scale in scales}


def digests(planned_fields: dict[str, Planned]) -> dict[str, str]:
    """Return number and digest of the runs of each plan."""
    ids = {scale: [identity(run) for run in plan.runs] for scale, plan in planned_fields.items()}
    return {
        scale: f"{len(keys)} {sha256(chr(10).join(keys).encode()).hexdigest()[:16]}"
        for scale, keys in ids.items()
    }


if __name__ == "__main__":
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = True
    FILE.write_text(json.dumps({name: digests(plans(name)) for name in packaged_recipes()}, indent=1) + "\n")
