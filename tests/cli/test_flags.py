from __future__ import annotations

import pytest

from mindspore_lite.cli.flags import Flag, parse, usage

KNOWN = {"name": Flag("A text."), "file": Flag("Another."), "loud": Flag("A truth.", is_bool=True)}


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ([], {}),
        (["--name=a"], {"name": "a"}),
        (["--name", "a"], {"name": "a"}),
        (["--name=a=b"], {"name": "a=b"}),
        ([" --name= a "], {"name": "a"}),
        (["--name", "-1"], {"name": "-1"}),
        (["--loud"], {"loud": "true"}),
        (["--loud", "--name=a"], {"loud": "true", "name": "a"}),
        (["--no-loud"], {"loud": "false"}),
        (["--loud=False"], {"loud": "false"}),
        (["--loud", "false"], {"loud": "false"}),
        (["--name=a", "--", "--file=b", "nonsense"], {"name": "a"}),
    ],
)
def test_flags_are_read(arguments: list[str], want: dict[str, str]) -> None:
    parsed = parse(arguments, KNOWN)
    assert (parsed.flags, parsed.problems) == (want, [])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["name=a"], "Failed: flag name=a is not valid."),
        (["-name=a"], "Failed: flag -name=a is not valid."),
        (["--loud", "maybe"], "Failed: flag maybe is not valid."),
        (["--other=a"], "other is not a valid flag"),
        (["--other", "a"], "other is not a valid flag"),
        (["--no-name"], "no-name is not a valid flag"),
        (["--no-loud=true"], "no-loud is not a valid flag"),
        (["--name=a", "--name=b"], "Failed: already parsed flag: name"),
        (["--loud", "--no-loud"], "Failed: already parsed flag: loud"),
        (["--name"], "No value provided for non-boolean type: name"),
        (["--name="], "No value provided for non-boolean type: name"),
        (["--name", "--loud"], "No value provided for non-boolean type: name"),
        (["--loud=maybe"], "loud must be true or false, but got 'maybe'"),
        (["--loud="], "loud must be true or false, but got ''"),
    ],
)
def test_a_wrong_argument_is_a_problem(arguments: list[str], problem: str) -> None:
    assert parse(arguments, KNOWN).problems == [problem]


def test_every_problem_is_told() -> None:
    assert len(parse(["--other=a", "x", "--name=", "--loud=2"], KNOWN).problems) == 4


def test_the_usage_names_every_flag() -> None:
    assert usage(KNOWN).splitlines() == [
        "  --name  A text.",
        "  --file  Another.",
        "  --loud  A truth.",
    ]
