"""`python -m mindspore_lite` is `mslite`, for who knows the interpreter and not the PATH."""

from mindspore_lite.cli.main import main

main()
