"""Write an encoder with a head of zeros: `python docs/results/seed_parts/zero_head.py ENCODER TASK FOLDER`.

ENCODER is "shipped" or a folder. A training that starts from FOLDER reads this head instead of drawing one,
whatever its seed.
"""

import sys
from pathlib import Path

import isogloss
from isogloss.encoders.family import head_parameters
from isogloss.encoders.saving import save_model
from isogloss.tasks import TASKS


def main(encoder: str, task: str, folder: Path) -> None:
    """Write the encoder's weights with the task's head, all of whose weights are 0."""
    loaded_encoder, tokenizer = isogloss.load_encoder(encoder)
    save_model(loaded_encoder, tokenizer, folder)
    model = TASKS[task].head(folder, seed=0)
    for weight in head_parameters(model).values():
        weight.data.zero_()
    save_model(model, tokenizer, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
