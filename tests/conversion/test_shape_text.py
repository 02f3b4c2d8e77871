from __future__ import annotations

import pytest

from mindspore_lite.conversion.shape_text import parse_shapes, shape_problems, shapes_text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", {}),
        (";;", {}),
        ("x:1,3,224,224", {"x": (1, 3, 224, 224)}),
        ("x:1;y:2,3;", {"x": (1,), "y": (2, 3)}),
        (" x : 1, 3 ; y : 2 ", {"x": (1, 3), "y": (2,)}),
        ("serving:input:0:1,8", {"serving:input:0": (1, 8)}),
        ("x:[1,3];y:[2]", {"x": (1, 3), "y": (2,)}),
        (
            "sample:1,4,64,64;timestep:1;encoder_hidden_states:1,77,1024",
            {
                "sample": (1, 4, 64, 64),
                "timestep": (1,),
                "encoder_hidden_states": (1, 77, 1024),
            },
        ),
    ],
)
def test_sizes_are_read_by_name(text: str, want: dict[str, tuple[int, ...]]) -> None:
    assert parse_shapes(text, "inputShape") == want


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "has 'x', wanted name:1,3,224,224"),
        (":1,2", "wanted name:"),
        ("x:", "of 'x' has the size '', wanted a whole number"),
        ("x:1,,2", "the size ''"),
        ("x:1,2junk", "the size '2junk', wanted a whole number"),
        ("x:1_0", "the size '1_0'"),
        ("x:1.5", "the size '1.5'"),
        ("x:٣", "the size '٣'"),
        ("x:0", "the size 0, wanted 1 to"),
        ("x:-1", "Unsupported dim < 0"),
        ("x:-7", "Unsupported dim < 0"),
        ("x:2147483648", "the size 2147483648, wanted 1 to 2147483647"),
        ("x:1;x:2", "names input 'x' twice"),
    ],
)
def test_what_makes_no_sense_is_an_error(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"^inputShape ") as caught:
        parse_shapes(text, "inputShape")
    assert words in str(caught.value)


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ValueError) as caught:
        parse_shapes("x:1,a,0;y;z:-2", "s")
    assert len(str(caught.value).splitlines()) == 4


def test_open_sizes_are_allowed_where_a_configuration_has_them() -> None:
    assert parse_shapes("x:[-1,3]", "s", open_dims=True) == {"x": (-1, 3)}
    with pytest.raises(ValueError, match="dim < 0"):
        parse_shapes("x:[-2,3]", "s", open_dims=True)
    with pytest.raises(ValueError, match="the size 0"):
        parse_shapes("x:[0,3]", "s", open_dims=True)


def test_numbers_are_checked_like_texts() -> None:
    assert shape_problems({"x": (1, 2)}, "s") == []
    assert len(shape_problems({"x": (1, 0), "y": (-1,), "z": (2**31,)}, "s")) == 3


def test_a_text_reads_back_as_the_same_shapes() -> None:
    shapes = {"a:b": (1, 2), "c": (3,)}
    assert parse_shapes(shapes_text(shapes), "s") == shapes
