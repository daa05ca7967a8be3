"""The version of the package, where it can be read without importing anything."""

VERSION = "0.1.0"
