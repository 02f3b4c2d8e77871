"""The release, in the one place that the package, its metadata and its users read it from."""

__version__ = "0.1.0"
