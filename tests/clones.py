"""Files of other projects' clones: paths, loaded modules, and programs built from their sources."""

import importlib.util
import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def clone_path(pytestconfig):
    """Return the path of a file or folder of a clone. Skip where the clone is absent."""

    def find(project, file):
        folder = Path(pytestconfig.rootpath, pytestconfig.getoption("--clones")).resolve()
        path = folder / project / file
        if not path.exists():
            pytest.skip(f"no clone of {project} in {pytestconfig.getoption('--clones')}")
        return path

    return find


@pytest.fixture
def clone(clone_path):
    """Load a file of a clone as a module."""

    def load(project, file):
        path = clone_path(project, file)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def program(clone_path, tmp_path):
    """Compile C and C++ files of a clone, and return the program's path."""

    def build(project, *files):
        sources = [clone_path(project, file) for file in files]
        path = tmp_path / sources[0].stem
        options = [f"-I{clone_path(project, '.')}", "-O0", "-w", "-include", "stdint.h", "-o", str(path)]
        for source in sources:  # C is no C++: enumerations are read from variable arguments.
            options += ["-x", "c" if source.suffix == ".c" else "c++", str(source)]
        try:
            subprocess.run(["g++", *options], check=True)
        except FileNotFoundError:
            pytest.skip("no compiler g++ here")
        return path

    return build
