"""`mslite demo`: the embedded model on a handful of handwritten digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mindspore_lite.cli.console import say, working
from mindspore_lite.cli.report import show_outputs
from mindspore_lite.context import Context
from mindspore_lite.model import Model, ModelType

DATA = Path(__file__).parent / "data"
DIGITS_MODEL = DATA / "digits.mindir"
_INK = " .:-=+*#%@"  # from empty to full


def demo() -> None:
    """Run the embedded model: one digit in the words of the quick start, then ten as pictures."""
    images, labels = samples()
    with Model() as model:
        with working("building the digits model"):
            model.build_from_file(str(DIGITS_MODEL), ModelType.MINDIR, Context())
        say(f"{DIGITS_MODEL.name}: a MobileNetV2-shaped classifier of handwritten digits")
        inputs = model.get_inputs()
        model.resize(inputs, [list(images[:1].shape)])
        inputs[0].set_data_from_numpy(images[0])
        show_outputs(model.predict(inputs))

        model.resize(inputs, [list(images.shape)])
        (output,) = model.predict([images])
    probabilities = output.get_data_to_numpy()
    for start in range(0, len(images), 5):
        say()
        row = slice(start, start + 5)
        say(gallery(images[row], probabilities[row], labels[row]))
    right = int((probabilities.argmax(1) == labels).sum())
    say()
    say(f"{right} of {len(labels)} digits right")


def samples() -> tuple[np.ndarray, np.ndarray]:
    """The embedded digits: float32 images of [n, 1, 8, 8] in 0..1, and what they show."""
    with np.load(DATA / "digits.npz", allow_pickle=False) as file:
        return file["images"], file["labels"]


def gallery(images: np.ndarray, probabilities: np.ndarray, labels: np.ndarray) -> str:
    """Digits side by side as text, each with the answer and its probability below."""
    pictures = [art(image[0]) for image in images]
    lines = ["  ".join(rows) for rows in zip(*pictures, strict=True)]
    captions = []
    for row, label in zip(probabilities, labels, strict=True):
        best = int(row.argmax())
        mark = "" if best == label else f" (is {label})"
        captions.append(f"{best} {row[best]:7.2%}{mark}".center(16))
    return "\n".join([*lines, "  ".join(captions)])


def art(image: np.ndarray) -> list[str]:
    """An image of values in 0..1 as lines of text, two characters per pixel."""
    levels = np.clip(np.rint(image * (len(_INK) - 1)), 0, len(_INK) - 1).astype(int)
    return ["".join(_INK[level] * 2 for level in row) for row in levels]
