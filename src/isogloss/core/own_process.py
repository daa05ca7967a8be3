"""Imported first in a process that isogloss starts from a list of modules: makes further imports quick."""

from isogloss.core.quick_imports import install

install()
