"""Count habits of English and of code, by their construction in the syntax tree.

    python tests/prose.py            rates of src, tests, scripts and pages, with the peers' rates
    python tests/prose.py KIND       every place of a kind: python tests/prose.py "that of"
    python tests/prose.py --peers FOLDER   measure optuna and peft as installed, and tests and scripts of
                                     checkouts in FOLDER/optuna and FOLDER/peft

Sentences are counted for 10,000 words of docstrings, messages, comments and pages; names and code for
10,000 lines. A group (src, tests, scripts, pages) may have a kind at twice the larger rate of the peers, or
once in 10,000; tests and scripts are compared with the peers' tests and scripts as well.
prose_exceptions.json lists names and phrases that are not counted, each with its reason.
"""

import ast
import functools
import io
import json
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PEERS = Path(__file__).with_name("prose_peers.json")
EXCEPTIONS = Path(__file__).with_name("prose_exceptions.json")
GROUPS = ("src", "tests", "scripts", "pages")
PEER_PACKAGES = ("optuna", "peft")
PEER_FOLDERS = {
    "tests": ("tests",),
    "scripts": ("docs", "examples", "method_comparison", "scripts", "tutorial"),
}
"""Folders of the peers' repositories with the same kind of files as a group."""
LONGEST_SENTENCE = 35
PER = 10_000

SENTENCES = {
    "that of": r"\b(?:that|those) of\b",
    "X alone": r"\b\w+ alone\b",
    "left out": r"\b(?:when|if|where|is|are|was|were|be) left out\b"
    r"|\bleav(?:e|es|ing) (?:it|them|out|either|\w+ out)\b",
    "of its own, beside": r"\bof (?:its|their|your|our|one['’]s|my) own\b|\bbeside\b",
    "made": r"\b(?:is|are|was|were|be|been|being) made\b|\bmade (?:of|from|anew|again|beside|here|there)\b",
    "another": r"\b(?:in|by|of|with|has|have|is|from) another\b|\botherwise than\b|\ba little another\b",
    "stands, lies": r"\b(?:stands?|stood|lies?|lay) "
    r"(?:in|at|on|beside|behind|before|next|there|where|between|among|below|near|far)\b",
    "is no X": r"\b(?:is|are|was|be|were) no (?!longer\b|more\b)\w+",
    "so many": r"\bso (?:many|long|far|much|few|small|large|little) (?:a )?\w+ (?:as|that)\b|\bso many\b",
    "told, says which": r"\b(?:is|are|was|be|been|being) (?:told|said)\b"
    r"|\btells? (?:of|that|which|what|apart)\b|\bsays? (?:which|what|how|of|nothing)\b",
    "looks at": r"\blook(?:s|ed|ing)? (?:at|for|up|whether)\b",
    "goes on": r"\b(?:goes?|gone|going|went) on\b",
    "anew": r"\banew\b|\bafresh\b",
    "brings": r"\b(?:brings?|brought) (?!about)\w+",
    "asked for": r"\b(?:asked|asks|ask) (?:for|of|to|whether)\b",
    "holds": r"\b(?:holds?|held) (?:the|it|them|us|every|to|as|what|against|together|in)\b",
    "takes of, gives it": r"\b(?:takes?|took|taken) (?:of|what|none|one|some|part|it|them|those|as|its)\b"
    r"|\bgives? (?:way|what|it|them)\b",
    "clause with there is": r"\b(?:that|what|than|where|as|which|who|those|if) there (?:is|are|was|were)\b",
    "the one, the other": r"\bthe one\b.{0,40}\bthe other\b|\bone after the other\b|\bto the other\b",
    "of which": r"\bof wh(?:ich|om)\b",
    "and no X": r", and (?:no|not|none|nothing|nobody) \w+",
    "too at the end": r"\w,? too[.;:,)]",
}
"""Anywhere in a text."""

STARTS = {
    "starts with of": r"(?:^|(?<=[.:;] ))(?:Of|of) (?!course|these|those|which)\w+",
}
"""Anywhere in a text, in this case of letters."""

SUMMARIES = {
    "summary with semicolon": r"^[^.\n]*;[^.\n]*\.?$",
    "summary is a clause": r"^(?:What|How|Where|Which|Whose|That) (?!is\b.*\?)[a-z]",
    "Return what": r"^Return (?:what|how|where|which|whose|that|those|this)\b",
}
"""In the first paragraph of a docstring."""

PATTERNS = {
    kind: re.compile(pattern, re.IGNORECASE if kind in SENTENCES else 0)
    for kind, pattern in {**SENTENCES, **STARTS, **SUMMARIES}.items()
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PARTICIPLE = re.compile(r"[a-z]+(?:ed|en|wn|ung|ought|aught|old|aid|eft|ut)")
IRREGULAR_PARTICIPLES = _words("done found gone held kept lost made meant met said seen sent told")
NOUNS = _words(
    "about bed bold build but checkout cold cut dropout embed embedding even feed fold gold golden hidden "
    "input layout left len lookup markdown need often old onboard open out output peft red rollout seed "
    "shared speed then thread threshold timeout token when"
)
"""Names that PARTICIPLE matches and that are nouns, adverbs, prepositions or verbs."""

PREPOSITIONS = _words(
    "about above across after along at before behind below beneath between beyond by for from in into of "
    "off on out over through to under up with within without"
)
ADJECTIVES = _words(
    "able ahead alone apart aside bad bare best both direct due empty far few first free fresh full good "
    "half high inward large last least long low middle most near new next old other others outward plain "
    "pure ready real rest same short small such sure together true whole worst"
)
PRONOUNS = _words(
    "alike each either every here how it mine neither one ones own some such that them there they this "
    "those what which who whose yours"
)
VERBS = _words("are can gives goes has holds is keeps lies may moves reads says stands takes was were will")
SYNONYMS = {"name: number": "number", "name: code": "code", "name: m": "m"}
"""Short names for an index, a language and measurements."""
KNOWN_NAMES = _words("in_channels in_features on_progress on_start on_trial to_dict to_json")


@dataclass(frozen=True)
class Place:
    """A place of a kind: path, line, and the text around it."""

    kind: str
    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass
class Area:
    """Size and places of a package of src, a folder of tests or a part of the pages."""

    words: int = 0
    lines: int = 0
    places: dict[str, list[Place]] = field(default_factory=lambda: defaultdict(list))

    def counts(self) -> Counter[str]:
        """Count the places of each kind."""
        return Counter({kind: len(places) for kind, places in self.places.items()})

    def add(self, places: Iterable[Place]) -> None:
        """Add places that are not exceptions."""
        for place in places:
            if (place.kind, place.text) not in exceptions():
                self.places[place.kind].append(place)


@functools.cache
def exceptions() -> dict[tuple[str, str], str]:
    """Return the reason of each exception, by kind and text."""
    rows = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    return {(row["kind"], row["text"]): row["reason"] for row in rows}


# Sentences


def find_habits(text: str, is_docstring: bool = False) -> Iterator[tuple[str, str]]:
    """Yield kind and excerpt of each habit of a text."""
    flat = " ".join(text.split())
    for kind in [*SENTENCES, *STARTS]:
        for match in PATTERNS[kind].finditer(flat):
            yield kind, match[0]
    if not is_docstring:
        return
    summary = " ".join(text.strip().split("\n\n")[0].split())
    for kind in SUMMARIES:
        if PATTERNS[kind].search(summary):
            yield kind, summary
    for sentence in re.split(r"(?<=[.?!]) (?=[A-Z])", flat):
        if len(sentence.split()) > LONGEST_SENTENCE and "|" not in sentence:
            yield "long sentence", sentence


def texts(source: str, tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text and whether it is a docstring: docstrings, texts below fields, messages, comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                if isinstance(statement, ast.Expr) and isinstance(text := _string(statement.value), str):
                    yield statement.lineno, text, True
        elif isinstance(node, ast.Call) and _function_name(node).endswith(("Error", "warn", "show_line")):
            for argument in node.args[:1]:
                yield node.lineno, _message(argument), False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# noqa", "# type", "# fmt")):
            yield token.start[0], token.string.lstrip("# "), False


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each paragraph, list item and table row of a page, without blocks of code."""
    is_code = False
    start = 1
    paragraph: list[str] = []
    for index, line in enumerate([*page.splitlines(), ""], 1):
        is_fence = line.lstrip().startswith("```")
        if (is_fence or not line.strip() or line.lstrip().startswith(("|", "- ", "#"))) and paragraph:
            yield start, " ".join(paragraph)
            paragraph = []
        if is_fence:
            is_code = not is_code
        elif line.strip() and not is_code:
            start = start if paragraph else index
            paragraph.append(line.strip())


def _string(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _message(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_string(part) or "X" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _message(left) + _message(right)
    return ""


def _function_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


# Names


def judge_name(name: str) -> str | None:
    """Return the kind of a variable's name, or None for a noun."""
    bare_text = name.strip("_")
    kinds = {
        "name: preposition": bare_text in PREPOSITIONS,
        "name: adjective": bare_text in ADJECTIVES,
        "name: pronoun": bare_text in PRONOUNS,
        "name: verb": bare_text in VERBS,
        "name: of_…": bare_text.startswith(("of_", "in_", "by_", "at_", "on_", "to_"))
        and bare_text not in KNOWN_NAMES,
        "name: participle": is_participle(bare_text),
        **{kind: bare_text == synonym for kind, synonym in SYNONYMS.items()},
    }
    return next((kind for kind, is_kind in kinds.items() if is_kind), None)


def judge_function(name: str) -> str | None:
    """Return the kind of a function's name, or None."""
    bare_text = name.strip("_")
    start = bare_text.partition("_")[0]
    if is_participle(bare_text):
        return "function: participle"
    if start in PREPOSITIONS - {"with", "without", "on", "to", "from"}:
        return "function: preposition"
    return None


def is_participle(name: str) -> bool:
    """Whether a name is a bare participle, such as `chosen`."""
    if name in NOUNS:
        return False
    return bool(PARTICIPLE.fullmatch(name)) or name in IRREGULAR_PARTICIPLES


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable and parameter. Fields of classes keep their names."""
    fields = {
        statement.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in fields:
                yield node.lineno, name
            case ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name


def find_names(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """Yield kind, line and text of names that are not nouns, and of functions that are not verbs."""
    for line, name in bound_names(tree):
        if kind := judge_name(name):
            yield kind, line, name
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and not _is_property(node)
            and (kind := judge_function(node.name))
        ):
            yield kind, node.lineno, node.name


def _is_property(function: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in function.decorator_list)


# Code


def judge_code(node: ast.AST) -> str | None:
    """Return the kind of a dense expression or statement, or None."""
    match node:
        case ast.Assign(targets=[ast.Tuple() as targets], value=ast.Tuple() as values):
            if not _names(targets, ast.Store) & _names(values, ast.Load):
                return "two statements in one"
        case ast.IfExp(body=ast.IfExp()) | ast.IfExp(orelse=ast.IfExp()):
            return "nested conditional"
        case ast.BinOp(op=ast.BitOr(), right=ast.IfExp()) | ast.AugAssign(op=ast.BitOr(), value=ast.IfExp()):
            return "conditional part of a dict"
        case ast.Dict(keys=keys, values=values):
            if any(
                key is None and isinstance(value, ast.IfExp) for key, value in zip(keys, values, strict=True)
            ):
                return "conditional part of a dict"
        case ast.List(elts=[ast.Starred()]) | ast.Set(elts=[ast.Starred()]) | ast.Tuple(elts=[ast.Starred()]):
            return "[*x]"
        case ast.Call(func=ast.Name(id="map" | "filter")):
            return "map or filter"
        case ast.Lambda():
            return "lambda"
        case ast.Name(id="Any", ctx=ast.Load()):
            return "Any"
        case ast.Subscript(value=ast.Subscript(), slice=ast.Constant(value=int())):
            return "x[a][b] by position"
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner not in {"self", "cls"}:
            if name.startswith("_") and not name.startswith("__"):
                return "private attribute of another object"
    return None


def _names(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    return {
        child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, context)
    }


KINDS = (
    *SENTENCES,
    *STARTS,
    *SUMMARIES,
    "long sentence",
    *(f"name: {part}" for part in ("participle", "adjective", "preposition", "pronoun", "verb", "of_…")),
    *SYNONYMS,
    "function: participle",
    "function: preposition",
    "two statements in one",
    "nested conditional",
    "conditional part of a dict",
    "[*x]",
    "map or filter",
    "lambda",
    "Any",
    "x[a][b] by position",
    "private attribute of another object",
)
WORD_KINDS = frozenset([*SENTENCES, *STARTS, *SUMMARIES, "long sentence"])
"""Kinds that are counted for 10,000 words. The others for 10,000 lines."""


# Areas


def read_module(area: Area, path: Path, output: Path) -> None:
    """Add size and places of a Python file to an area."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    area.lines += source.count("\n")
    for line, text, is_docstring in texts(source, tree):
        area.words += len(text.split())
        area.add(Place(kind, output, line, excerpt) for kind, excerpt in find_habits(text, is_docstring))
    area.add(Place(kind, output, line, name) for kind, line, name in find_names(tree))
    for node in ast.walk(tree):
        if kind := judge_code(node):
            area.add([Place(kind, output, getattr(node, "lineno", 0), ast.unparse(node))])


def read_page(area: Area, path: Path, output: Path) -> None:
    """Add size and places of a page to an area."""
    for line, text in paragraphs(path.read_text(encoding="utf-8")):
        area.words += len(text.split())
        area.add(Place(kind, output, line, excerpt) for kind, excerpt in find_habits(text))


def files(group: str) -> Iterator[tuple[str, Path]]:
    """Yield area and path of each file of a group."""
    if group == "pages":
        yield "guides", ROOT / "README.md"
        yield "guides", ROOT / "CONTRIBUTING.md"
        for path in sorted((ROOT / "docs").rglob("*.md")):
            parts = path.relative_to(ROOT / "docs").parts
            yield parts[0] if len(parts) > 1 else "guides", path
        return
    folders = {"src": ["src/isogloss"], "tests": ["tests"], "scripts": ["docs", "examples", "benchmarks"]}
    for folder in folders[group]:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).parts
            yield folder if group == "scripts" or len(parts) == 1 else parts[0], path


@functools.cache
def read_group(group: str) -> dict[str, Area]:
    """Return the areas of a group by name."""
    areas: dict[str, Area] = defaultdict(Area)
    for name, path in files(group):
        read = read_page if path.suffix == ".md" else read_module
        read(areas[name], path, path.relative_to(ROOT))
    return dict(areas)


def read_peer(package: str) -> Area:
    """Return an installed package as one area, without its tests."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(f"{package} is not installed")
    (root,) = spec.submodule_search_locations
    area = Area()
    for path in sorted(Path(root).rglob("*.py")):
        text = path.relative_to(Path(root).parent)
        if "test" not in text.as_posix():
            read_module(area, path, text)
    return area


# Rates and bounds


def rates(areas: Iterable[Area]) -> dict[str, float]:
    """Return places per 10,000 words or lines of several areas together, by kind."""
    areas = list(areas)
    counts = sum((area.counts() for area in areas), Counter[str]())
    words = sum(area.words for area in areas)
    lines = sum(area.lines for area in areas)
    sizes = {kind: words if kind in WORD_KINDS else lines for kind in KINDS}
    return {kind: PER * counts[kind] / max(1, size) for kind, size in sizes.items()}


def allowed_rates(group: str) -> dict[str, float]:
    """Return the allowed rate of each kind in a group: twice the larger rate of the peers, at least 1."""
    peers = json.loads(PEERS.read_text(encoding="utf-8")).values()
    measured_rates = [peer["rates"] for peer in peers]
    measured_rates += [peer[f"rates of {group}"] for peer in peers if group in PEER_FOLDERS]
    return {kind: max(1.0, *(2 * peer.get(kind, 0) for peer in measured_rates)) for kind in KINDS}


def high_kinds(areas: dict[str, Area], limits: dict[str, float]) -> list[str]:
    """Return the kinds that the areas of a group have above the allowed rate."""
    return [kind for kind, rate in rates(areas.values()).items() if rate > limits[kind]]


def excesses(areas: dict[str, Area], limits: dict[str, float]) -> Iterator[str]:
    """Yield, for each kind above the allowed rate, both rates and the places."""
    measured_rates = rates(areas.values())
    for kind in high_kinds(areas, limits):
        places = [str(place)[:150] for area in areas.values() for place in area.places[kind]]
        listed_text = "\n  ".join(places[:40])
        yield f"{kind}: {measured_rates[kind]:.1f}, at most {limits[kind]:.1f}:\n  {listed_text}"


def record_peers(folder: Path) -> None:
    """Measure the peers as installed, and tests and scripts in a folder with a checkout of each."""
    peers = {}
    for package in PEER_PACKAGES:
        area = read_peer(package)
        peers[package] = {
            "version": metadata.version(package),
            "words": area.words,
            "lines": area.lines,
            "rates": round_rates(area),
        }
        for group, folders in PEER_FOLDERS.items():
            area = Area()
            for path in sorted(path for name in folders for path in (folder / package / name).rglob("*.py")):
                read_module(area, path, path.relative_to(folder))
            peers[package] |= {
                f"words of {group}": area.words,
                f"lines of {group}": area.lines,
                f"rates of {group}": round_rates(area),
            }
    PEERS.write_text(json.dumps(peers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def round_rates(area: Area) -> dict[str, float]:
    """Return the rates of an area that are not 0, rounded."""
    return {kind: round(rate, 2) for kind, rate in rates([area]).items() if rate}


def table() -> str:
    """Return the rates of all kinds as text. An asterisk marks a rate above the allowed one."""
    peers = json.loads(PEERS.read_text(encoding="utf-8"))
    limits = {group: allowed_rates(group) for group in GROUPS}
    groups = {group: rates(read_group(group).values()) for group in GROUPS}
    columns = [*GROUPS, *peers, "allowed", *PEER_FOLDERS]
    lines = [f"{'per 10,000 words or lines':36}" + "".join(f"{name:>9}" for name in columns)]
    for kind in KINDS:
        cells = [
            f"{rate[kind]:8.1f}{'*' if rate[kind] > limits[group][kind] else ' '}"
            for group, rate in groups.items()
        ]
        cells += [f"{peer['rates'].get(kind, 0):8.1f} " for peer in peers.values()]
        cells += [f"{limits[group][kind]:8.1f} " for group in ("src", *PEER_FOLDERS)]
        lines.append(f"{kind:36}" + "".join(cells))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--peers", folder]:
            record_peers(Path(folder))
        case [kind]:
            areas = [area for group in GROUPS for area in read_group(group).values()]
            sys.stdout.writelines(f"{place}\n" for area in areas for place in area.places[kind])
        case _:
            sys.stdout.write(table() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
