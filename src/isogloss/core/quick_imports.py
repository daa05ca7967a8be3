"""Quick imports of torch and transformers in the processes of the command line.

The garbage collector rests while they are imported, as next to nothing of them is garbage. Transformers
leaves out what encoders of text do without: tensors over several machines, losses of vision, a compiler. Not
for processes of others, who may use the rest of transformers, nor where a launcher started several.
"""

import gc
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from isogloss.core.processes import launched

LEAN = {f"transformers.{name}" for name in ("modeling_utils", "masking_utils", "generation.utils")}
"""What every model of transformers imports, and most of the time goes into."""

UTILITIES = "transformers.utils.import_utils"
"""What decides which parts of transformers can be imported."""

HEAVY = {"torch", "transformers", "transformers.models", "pandas", UTILITIES, *LEAN}

UNUSED = ("is_torch_distributed_available", "is_scipy_available", "is_accelerate_available")
"""Questions of ``transformers.utils`` that are answered with no while ``LEAN`` is imported."""

COMPILER = "torch._dynamo"
"""The compiler of torch, which takes most of a second to import and is not used here."""

MARKS = ("allow_in_graph", "assume_constant_result", "disable")
"""Decorators that mark functions for the compiler; without it they change nothing."""


class QuickImports(MetaPathFinder):
    """Finds the heavy modules, to import them quickly."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec of a heavy module with a quicker loader; none for others."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in HEAVY else None
        if spec and spec.loader:
            spec.loader = _QuickLoader(spec.loader)
        return spec


class _QuickLoader(Loader):
    """Executes a module without garbage collection, and what models require as far as text requires it."""

    def __init__(self, usual: Loader) -> None:
        self.usual = usual

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        is_lean = module.__name__ in LEAN and not sys.modules["torch"].cuda.is_available()
        present = {*sys.modules}
        with _nothing_collected():
            try:
                with _for_text_alone() if is_lean else nullcontext():
                    self.usual.exec_module(module)
            except Exception:
                if not is_lean:
                    raise
                _forget("transformers", {*sys.modules} - present)
                self.usual.exec_module(module)  # Slower, with all it finds: another version of transformers.
        if module.__name__ == UTILITIES:
            _list_models_once(vars(module))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.usual, name)  # What others request of a loader: its source, its resources.


class _Compiler(ModuleType):
    """Stands for the compiler of torch until something but a mark is looked up in it."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__file__", "__spec__", "__wrapped__"):
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            _forget(COMPILER, [*sys.modules])
            vars(sys.modules["torch"])["_dynamo"] = import_module(COMPILER)
        return getattr(sys.modules[COMPILER], name)


def install() -> None:
    """Import heavy modules quickly from here on, in this process; not where a launcher started several."""
    if not launched() and not any(isinstance(finder, QuickImports) for finder in sys.meta_path):
        sys.meta_path.insert(0, QuickImports())


@dataclass(frozen=True)
class QuickStart:
    """A function, by its module and name, that a new process runs; its imports are quick there."""

    module: str
    name: str

    def __call__(self, *arguments: object) -> None:
        """Run the function."""
        getattr(import_module(self.module), self.name)(*arguments)

    def __setstate__(self, state: dict[str, str]) -> None:
        """Arrive in the new process, before the arguments do."""
        vars(self).update(state)
        install()


@contextmanager
def _nothing_collected() -> Iterator[None]:
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # What was imported stays, and need not be looked through again.
        gc.enable()


@contextmanager
def _for_text_alone() -> Iterator[None]:
    """Let transformers find what it requires for text alone, until the block ends."""
    torch, utils = sys.modules["torch"], sys.modules["transformers.utils"]
    with ExitStack() as stack:
        for owner in (utils, sys.modules["transformers.utils.import_utils"]):
            for name in UNUSED:
                _replace(stack, owner, name, lambda: False)
        for name in MARKS:
            _replace(stack, torch.compiler, name, _unmarked)
        if COMPILER not in sys.modules:
            vars(torch)["_dynamo"] = sys.modules[COMPILER] = _Compiler(COMPILER)
            vars(sys.modules[COMPILER]).update(dict.fromkeys(MARKS, _unmarked))
        if isinstance(compiler := sys.modules[COMPILER], _Compiler):  # One module in it is light.
            compiler.__path__ = [f"{path}/_dynamo" for path in torch.__path__]
            stack.callback(vars(compiler).pop, "__path__")
        yield


def _replace(stack: ExitStack, owner: object, name: str, value: object) -> None:
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
        setattr(owner, name, value)


def _forget(package: str, modules: Iterable[str]) -> None:
    """Let a package's modules be imported anew."""
    for name in modules:
        if name == package or name.startswith(f"{package}."):
            del sys.modules[name]


def _list_models_once(utilities: dict[str, Any]) -> None:
    """Let transformers read the sources of its models once for the two lists it makes of them."""
    read = cache(utilities["create_import_structure_from_path"])

    def structure(path: object) -> Any:
        folder = Path(str(path))
        return read(folder.parent if folder.name == "__init__.py" else folder)

    utilities["create_import_structure_from_path"] = structure


def _unmarked(function: Any = None, *_: object, **__: object) -> Any:
    return function or _unmarked
