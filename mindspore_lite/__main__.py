"""`python -m mindspore_lite` runs `mslite`, where the command is not on the PATH."""

from mindspore_lite.cli.main import main

main()
