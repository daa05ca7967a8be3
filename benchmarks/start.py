"""What does it cost to start? Processor seconds of whole processes, and as ratios to the import of torch.

    python benchmarks/start.py [--rounds 3] [--out FILE]

The least of several rounds, in turns; a prediction is that of one sentence by the shipped encoder with a
random head.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from predict_memory import random_model

TORCH = "import torch"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sentence = Path(folder, "sentence.txt")
        sentence.write_text("Tuki mirne baboza .\n", encoding="utf-8")
        model = random_model().export(Path(folder) / "model")
        commands = {
            TORCH: ["-c", TORCH],
            "import transformers' BERT": ["-c", "import transformers.models.bert.modeling_bert"],
            "isogloss --help": ["-m", "isogloss", "--help"],
            "isogloss list methods": ["-m", "isogloss", "list", "methods"],
            "isogloss predict, a sentence": ["-m", "isogloss", "predict", str(model), str(sentence)],
            "a training process": [
                "-c",
                "import isogloss.runs.execute, transformers.models.bert.modeling_bert",
            ],
        }
        rounds = [{name: cost(words) for name, words in commands.items()} for _ in range(asked.rounds)]
    found = {name: min(one[name] for one in rounds) for name in commands}
    print("| process | processor seconds | : import torch |\n|---|---|---|")
    for name, seconds in found.items():
        print(f"| {name} | {seconds:.2f} | {seconds / found[TORCH]:.2f} |")
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def cost(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
