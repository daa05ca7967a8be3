"""Draw the diagrams of the guides and of the reference: python docs/images/diagrams.py

A diagram consists of boxes on a plane and arrows between them. Colours follow the reader's light or dark mode.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

HERE = Path(__file__).parent
LINE = 17
LETTER = 5.8
"""Width of a letter at 11 px, at most on average."""
STYLE = """
.paper{fill:#ffffff}.box{fill:#f6f6f3;stroke:#b9b9b4}.blue{fill:#e7f0f8;stroke:#0b6cb3}
.orange{fill:#fbeadf;stroke:#cf5a00}.title{fill:#222222;font-weight:600}.text{fill:#444444}
.arrow{stroke:#6b6b6b;fill:none}.head{fill:#6b6b6b}
@media (prefers-color-scheme:dark){.paper{fill:#131416}.box{fill:#202124;stroke:#5f6368}
.blue{fill:#16293a;stroke:#5aa9e6}.orange{fill:#3a2413;stroke:#f0903f}.title{fill:#f1f1f1}.text{fill:#c8c8c8}
.arrow{stroke:#a0a0a0}.head{fill:#a0a0a0}}
"""


@dataclass(frozen=True)
class Box:
    """A box with a title and lines of text. Position and size are in pixels."""

    x: int
    y: int
    width: int
    title: str
    lines: tuple[str, ...] = ()
    color: str = "box"

    @property
    def height(self) -> int:
        return 14 + LINE * (1 + len(self.lines))

    @property
    def middle(self) -> tuple[float, float]:
        return self.x + self.width / 2, self.y + self.height / 2


@dataclass(frozen=True)
class Diagram:
    """Boxes by name, and arrows with the names of two boxes and a label."""

    alt: str
    width: int
    height: int
    boxes: Mapping[str, Box]
    arrows: Sequence[tuple[str, str, str]]


def draw(diagram: Diagram) -> str:
    """Return a diagram as SVG."""
    arrows = [
        draw_arrow(diagram.boxes[start], diagram.boxes[end], label) for start, end, label in diagram.arrows
    ]
    boxes = [draw_box(box) for box in diagram.boxes.values()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {diagram.width} {diagram.height}" '
        f'width="{diagram.width}" role="img" font-family="system-ui, sans-serif" font-size="11">'
        f"<title>{escape(diagram.alt)}</title><style>{STYLE}</style>"
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f'<rect class="paper" width="{diagram.width}" height="{diagram.height}" rx="6"/>'
        + "\n".join([*arrows, *boxes])
        + "</svg>\n"
    )


def draw_box(box: Box) -> str:
    """Return a box with its texts as SVG.

    Raises ValueError if a text is wider than the box.
    """
    for text in (box.title, *box.lines):
        if LETTER * len(text) + 14 > box.width:
            raise ValueError(f"{text!r} needs {LETTER * len(text) + 14:.0f} pixels; its box has {box.width}")
    rectangle = f'<rect class="{box.color}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="5"/>'
    texts = [
        f'<text class="{"text" if row else "title"}" x="{box.x + 9}" y="{box.y + 19 + LINE * row}">{escape(text)}</text>'
        for row, text in enumerate((box.title, *box.lines))
    ]
    return rectangle + "".join(texts)


def draw_arrow(start: Box, end: Box, label: str) -> str:
    """Return an arrow between the nearest sides of two boxes, level or upright if these overlap."""
    x, y = start.middle
    end_x, end_y = end.middle
    is_upright = start.x < end.x + end.width and end.x < start.x + start.width
    if is_upright:
        x = end_x = (max(start.x, end.x) + min(start.x + start.width, end.x + end.width)) / 2
        y = start.y + start.height if start.y < end.y else start.y
        end_y = end.y - 2 if start.y < end.y else end.y + end.height + 2
    else:
        x = start.x + start.width
        end_x = end.x - 2
        overlap = max(start.y, end.y), min(start.y + start.height, end.y + end.height)
        if overlap[0] < overlap[1]:
            y = end_y = sum(overlap) / 2
    line = f'<path class="arrow" d="M{x:.0f} {y:.0f}L{end_x:.0f} {end_y:.0f}" marker-end="url(#head)"/>'
    if not label:
        return line
    label_x = (x + end_x) / 2 + (6 if is_upright else 0)
    label_y = (y + end_y) / 2 + (4 if is_upright else -5)
    anchor = "start" if is_upright else "middle"
    text = f'<text class="text" x="{label_x:.0f}" y="{label_y:.0f}" text-anchor="{anchor}">{escape(label)}</text>'
    return line + text


CONTAINERS = Diagram(
    alt="The Dockerfile builds an image; docker run mounts your folder as /work, where runs are written. "
    "Apptainer builds isogloss.sif from the image for a cluster",
    width=700,
    height=176,
    boxes={
        "file": Box(10, 20, 150, "Dockerfile", ("Python, torch, isogloss",)),
        "image": Box(240, 20, 150, "isogloss:latest", ("Docker image",), "blue"),
        "run": Box(490, 10, 200, "docker run", ("/work is your folder:", "recipe, data, runs/"), "orange"),
        "sif": Box(240, 115, 150, "isogloss.sif", ("Apptainer image",), "blue"),
        "slurm": Box(490, 105, 200, "apptainer run, Slurm job", ("runs as you,", "in the current folder"), "orange"),
    },
    arrows=[("file", "image", "build"), ("image", "run", "-v $PWD:/work"), ("image", "sif", "build"),
            ("sif", "slurm", "--nv: GPUs")],
)  # fmt: skip

CORPORA = Diagram(
    alt="Built-in languages, downloaded corpora and your own files with a description become examples of train, "
    "dev and test splits by language, which a recipe names as corpus and task",
    width=720,
    height=196,
    boxes={
        "built-in": Box(10, 10, 190, "Built-in languages", ("qaa to qai, no files",)),
        "fetched": Box(10, 74, 190, "isogloss fetch, --data hub", ("xnli, ud, squad …",)),
        "own": Box(10, 138, 190, "Your files", ("with a description (TOML)",)),
        "examples": Box(290, 66, 180, "Examples", ("by language and split:", "train, dev, test"), "blue"),
        "grid": Box(550, 66, 160, "Recipe: [grid]", ("corpus, task,", "source, targets"), "orange"),
    },
    arrows=[("built-in", "examples", ""), ("fetched", "examples", ""), ("own", "examples", ""),
            ("examples", "grid", "named by")],
)  # fmt: skip

LIBRARY = Diagram(
    alt="Functions by what they take: texts become states, which are compared; models are connected, averaged, "
    "mixed and adjusted; predictions are compared with tests",
    width=740,
    height=226,
    boxes={
        "texts": Box(10, 10, 170, "Model and texts", ("load_encoder, load_corpus",)),
        "states": Box(250, 10, 170, "states", ("by layer; of words too",), "blue"),
        "similarity": Box(500, 10, 230, "Representations", ("cka, retrieval, word_distances,", "anisotropy, mine"), "orange"),
        "models": Box(10, 94, 170, "Two or more models", ("torch modules",)),
        "weights": Box(500, 88, 230, "Weights", ("path, plane, deltas, average",), "orange"),
        "predictions": Box(10, 166, 170, "Predictions", ("lists, tables, files",)),
        "tests": Box(500, 150, 230, "Comparison", ("compare: difference, interval,", "tests over seeds and examples"), "orange"),
    },
    arrows=[("texts", "states", ""), ("states", "similarity", ""), ("models", "weights", ""),
            ("predictions", "tests", "")],
)  # fmt: skip

MACHINES = Diagram(
    alt="Processes on several machines, GPUs, Slurm jobs or Ray tasks work in one folder or bucket. Each leases a "
    "run in .claims, renews the lease every ten seconds, and writes the record",
    width=740,
    height=216,
    boxes={
        "gpus": Box(10, 10, 180, "Machine with GPUs", ("a process per GPU",)),
        "machine": Box(10, 82, 180, "Another machine", ("the same command",)),
        "cluster": Box(10, 154, 180, "Slurm jobs, Ray tasks", ("--engine slurm, ray",)),
        "claims": Box(290, 26, 190, ".claims/", ("a lease per run, renewed", "every ten seconds"), "orange"),
        "runs": Box(290, 126, 190, "ID/record.json, ID/work", ("finished runs,", "checkpoints"), "blue"),
        "report": Box(580, 82, 150, "report.html", ("when all runs", "are finished"), "blue"),
    },
    arrows=[("gpus", "claims", "lease"), ("machine", "claims", ""), ("machine", "runs", ""),
            ("cluster", "runs", "write"), ("runs", "report", "")],
)  # fmt: skip

PLUG_INS = Diagram(
    alt="A recipe names module and class; isogloss imports the module, checks its fields, trains with the method "
    "and shows the rows of the diagnostic in the report",
    width=740,
    height=176,
    boxes={
        "recipe": Box(10, 10, 240, "study.toml", ('name = "transfer_extras:', '        LabelSmoothing"', "smoothing = 0.2")),
        "module": Box(10, 115, 240, "transfer_extras.py", ("LabelSmoothing, CommonestLabel",), "orange"),
        "checks": Box(330, 60, 160, "Before training", ("imports the class,", "checks its fields"), "blue"),
        "method": Box(570, 10, 160, "Method.train", ("a model per seed",), "orange"),
        "diagnostic": Box(570, 110, 160, "Diagnostic.measure", ("rows in the report",), "orange"),
    },
    arrows=[("recipe", "checks", ""), ("module", "checks", ""), ("checks", "method", ""), ("checks", "diagnostic", "")],
)  # fmt: skip

PRESETS = Diagram(
    alt="A field is set by the recipe, otherwise by the preset, which has the paper's value or the released code's, "
    "otherwise by the default of isogloss",
    width=740,
    height=150,
    boxes={
        "recipe": Box(10, 44, 150, "Your recipe", ("epochs = 3",), "orange"),
        "paper": Box(220, 10, 190, 'preset = "paper"', ("what the paper states",), "blue"),
        "released": Box(220, 88, 190, 'preset = "released"', ("what its code does",), "blue"),
        "default": Box(480, 44, 100, "Default", ("of isogloss",)),
        "run": Box(640, 44, 90, "Run", ("all fields",)),
    },
    arrows=[("recipe", "paper", "else"), ("recipe", "released", ""), ("paper", "default", "else"),
            ("released", "default", ""), ("default", "run", "")],
)  # fmt: skip

RECORDS = Diagram(
    alt="A folder of runs: plan.json and report.html on top, and a folder for each run with its record, machine "
    "facts, checksums and model. Records become DataFrames and the report",
    width=740,
    height=226,
    boxes={
        "plan": Box(10, 20, 220, "runs/quickstart/plan.json", ("recipe, command, ids of runs",)),
        "run": Box(10, 98, 220, "runs/quickstart/e1a3…/", ("record.json: fields and rows", "made.json: device, time", "checksums.json, model/"), "blue"),
        "rows": Box(320, 98, 170, "Rows", ("scores, interpolation,", "deltas, cka …"), "blue"),
        "frames": Box(570, 66, 160, "study.frame(…)", ("pandas DataFrames",), "orange"),
        "report": Box(570, 150, 160, "report.html", ("figures/, tables/",), "orange"),
    },
    arrows=[("plan", "run", "lists"), ("run", "rows", ""), ("rows", "frames", ""), ("rows", "report", "")],
)  # fmt: skip

TRUST = Diagram(
    alt="Recipes and plug-ins are code and run with your rights. Corpora, models, buckets, archives and responses "
    "are data: they are checked, and refused in one line if damaged or malicious",
    width=740,
    height=190,
    boxes={
        "code": Box(10, 15, 210, "Code", ("recipe, its modules,", "installed plug-ins")),
        "data": Box(10, 105, 210, "Data", ("corpora, models, archives,", "folders, buckets, responses")),
        "you": Box(510, 15, 220, "Runs with your rights", ("read it before you run it",), "orange"),
        "checks": Box(290, 105, 150, "Checked", ("names, sizes, links,", "checksums"), "blue"),
        "folder": Box(510, 80, 220, "Written to your folder only", ("no code, no pickles",), "blue"),
        "refused": Box(510, 145, 220, "Refused in one line", (), "blue"),
    },
    arrows=[("code", "you", ""), ("data", "checks", ""), ("checks", "folder", ""), ("checks", "refused", "")],
)  # fmt: skip

LAYOUTS = Diagram(
    alt="The reader decides columns, tag scheme and comments from the whole file. It returns sentences with labels, "
    "or one message with the file, the line and the correction",
    width=740,
    height=176,
    boxes={
        "file": Box(10, 30, 170, "test.txt", ("# a comment", "1   Anna    B-PER", "2   sleeps  O")),
        "reader": Box(260, 38, 180, "Decided from all lines", ("columns, separators,", "scheme, comments, header"), "blue"),
        "examples": Box(520, 10, 210, "Sentences and labels", ("Anna/B-PER sleeps/O",), "orange"),
        "message": Box(520, 90, 210, "or one message", ("file and line, what is wrong,", "what is allowed, what to do"), "orange"),
    },
    arrows=[("file", "reader", ""), ("reader", "examples", ""), ("reader", "message", "")],
)  # fmt: skip

RECIPE = Diagram(
    alt="The tables of a recipe in the order in which runs need each other: encoder, alignments and translations, "
    "the grid with its methods, and measurements; corpora are read by all",
    width=740,
    height=168,
    boxes={
        "encoders": Box(10, 15, 150, "[encoder]", ("pretrained or", "pretrained here")),
        "translations": Box(190, 15, 170, "[align] [translate]", ("[[adjust]]: bitext", "changes an encoder")),
        "grid": Box(390, 15, 160, "[grid]", ("data, seeds, adapters,", "[grid.optimization]")),
        "methods": Box(390, 105, 160, "[[grid.method]]", ("how models are trained",)),
        "diagnostics": Box(590, 15, 140, "[[measure]]", ("scores, paths,", "similarity …")),
        "corpora": Box(10, 105, 350, "Corpora of the catalogue", ("named by [grid], [translate], [[adjust]] and [[measure]]",)),
    },
    arrows=[("encoders", "translations", ""), ("translations", "grid", ""), ("grid", "diagnostics", ""),
            ("methods", "grid", ""), ("corpora", "grid", "")],
)  # fmt: skip

DIAGRAMS = {
    "containers": CONTAINERS,
    "corpora": CORPORA,
    "layouts": LAYOUTS,
    "library": LIBRARY,
    "machines": MACHINES,
    "plug-ins": PLUG_INS,
    "presets": PRESETS,
    "records": RECORDS,
    "trust": TRUST,
    **{
        f"recipe-{page}": replace(
            RECIPE, boxes={**RECIPE.boxes, page: replace(RECIPE.boxes[page], color="orange")}
        )
        for page in RECIPE.boxes
    },
}
"""Diagrams by file name. Each diagram of the recipe highlights the part that a page describes."""


def main() -> None:
    for name, diagram in DIAGRAMS.items():
        (HERE / f"{name}.svg").write_text(draw(diagram), encoding="utf-8")


if __name__ == "__main__":
    main()
