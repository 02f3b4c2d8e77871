"""Train the demo model: handwritten digits in, class probabilities out, saved as a 1 MB MindIR.

No other script of the repository needs MindSpore; nothing imports this one and no test runs it.
The files it makes are committed. To make them again, bit for bit, in about ten minutes:

    pip install mindspore==2.10.0 scikit-learn
    python examples/train_digits/train.py

It writes

- `digits.mindir`, the net with a dynamic batch axis: float32 [N, 1, 8, 8] in 0..1 -> [N, 10];
- `digits.npz`, the first held-out digit of each class: `images` as the net wants them, `labels`;
- `digits_reference.npz`, all held-out digits: `images` (uint8, 0..16), `labels`, and the
  `probabilities` that MindSpore computes from the exported file.

A fifth of the 1797 digits is held out: it serves the final figure (358 of 360 right) and nothing
else.
"""

import argparse
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 1
REPOSITORY = Path(__file__).resolve().parents[2]

# The stages of MobileNetV2: (expansion, channels, blocks, stride of the first block). The paper
# has seven and ends at 320 channels; a digit needs no more than these, and the file stays at 1 MB.
STAGES = [(1, 16, 1, 1), (4, 24, 2, 2), (4, 40, 3, 1), (4, 64, 4, 2)]
STEM, HEAD, CLASSES = 16, 256, 10


def conv_bn(channels_in, channels_out, kernel, stride=1, group=1, activate=True):
    """Convolution and BatchNorm, then ReLU6 unless this is the linear end of a bottleneck."""
    padding = kernel // 2
    conv = nn.Conv2d(channels_in, channels_out, kernel, stride, "pad", padding, group=group)
    return [conv, nn.BatchNorm2d(channels_out)] + ([nn.ReLU6()] if activate else [])


class InvertedResidual(nn.Cell):
    """Widen with 1x1, filter each channel by itself with 3x3, narrow with a linear 1x1."""

    def __init__(self, channels_in, channels_out, stride, expansion):
        super().__init__()
        hidden = channels_in * expansion
        widen = conv_bn(channels_in, hidden, 1) if expansion > 1 else []
        filter_each = conv_bn(hidden, hidden, 3, stride, group=hidden)
        narrow = conv_bn(hidden, channels_out, 1, activate=False)
        self.layers = nn.SequentialCell(widen + filter_each + narrow)
        self.shortcut = stride == 1 and channels_in == channels_out

    def construct(self, x):
        """Add the input where the shape stayed."""
        return x + self.layers(x) if self.shortcut else self.layers(x)


class DigitNet(nn.Cell):
    """MobileNetV2 in miniature. Returns logits in training, probabilities otherwise."""

    def __init__(self):
        super().__init__()
        # Enlarging inside the net lets a user pass the 8x8 digit itself. ops.interpolate would do
        # it too, but with a dynamic batch exports a Switch that MindSpore cannot load again.
        self.enlarge = ops.ResizeNearestNeighbor((32, 32))
        blocks, channels = conv_bn(1, STEM, 3, stride=2), STEM
        for expansion, wanted, count, first_stride in STAGES:
            for stride in [first_stride] + [1] * (count - 1):
                blocks.append(InvertedResidual(channels, wanted, stride, expansion))
                channels = wanted
        self.features = nn.SequentialCell(blocks + conv_bn(channels, HEAD, 1))
        self.head = nn.Dense(HEAD, CLASSES)

    def construct(self, x):
        """Enlarge, filter, average, classify."""
        x = self.features(self.enlarge(x))
        logits = self.head(ops.mean(x, (2, 3)))
        return logits if self.training else ops.softmax(logits, -1)


def scaled(pixels):
    """Pixels 0..16 -> the net's input."""
    return pixels.astype(np.float32) / 16


def shifted(pixels, rng):
    """Move each digit by -1, 0 or 1 pixel along both axes; zeros come in at the edge."""
    padded = np.pad(pixels, ((0, 0), (0, 0), (1, 1), (1, 1)))
    corners = rng.integers(0, 3, (len(pixels), 2))
    return np.stack([p[:, y : y + 8, x : x + 8] for p, (y, x) in zip(padded, corners, strict=True)])


def train(net, images, labels, epochs, batch):
    """Adam under a cosine schedule; the last incomplete batch of each epoch is left out."""
    rng = np.random.default_rng(SEED)
    steps = len(images) // batch
    rates = nn.cosine_decay_lr(1e-5, 4e-3, steps * epochs, steps, epochs)
    adam = nn.AdamWeightDecay(net.trainable_params(), rates, weight_decay=1e-3)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), adam)
    step.set_train(True)
    for epoch in range(1, epochs + 1):
        losses = []
        for chosen in rng.permutation(len(images))[: steps * batch].reshape(steps, batch):
            x = Tensor(scaled(shifted(images[chosen], rng)))
            losses.append(step(x, Tensor(labels[chosen], ms.int32)).asnumpy())
        print(f"epoch {epoch:2d}/{epochs}  loss {np.mean(losses):.4f}", flush=True)


def export(trained, path):
    """Write the net as MindIR with a dynamic batch and return it as MindSpore reads it back."""
    net = DigitNet()  # a fresh one: training left its own wrappers in the names of layers
    ms.load_param_into_net(net, trained.parameters_dict())
    net.set_train(False)
    x = Tensor(shape=[None, 1, 8, 8], dtype=ms.float32)
    ms.export(net, x, file_name=str(path), file_format="MINDIR")
    path.chmod(0o644)  # MindSpore leaves 0400
    return nn.GraphCell(ms.load(str(path)))


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Train the digits model and write it with its samples.",
        epilog="example: python train.py --epochs 2 --data /tmp/digits --reference /tmp/digits",
    )
    folder = {"type": Path, "metavar": "DIR"}
    parser.add_argument(
        "--data",
        default=REPOSITORY / "mindspore_lite/cli/data",
        help="for digits.mindir and digits.npz (%(default)s)",
        **folder,
    )
    parser.add_argument(
        "--reference",
        default=REPOSITORY / "tests/data",
        help="for digits_reference.npz (%(default)s)",
        **folder,
    )
    parser.add_argument("--epochs", type=int, default=40, help="(%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="(%(default)s)")
    return parser.parse_args()


def main():
    """Train, export, and keep what the demo and the tests need."""
    args = arguments()
    for folder in (args.data, args.reference):
        folder.mkdir(parents=True, exist_ok=True)

    ms.set_context(mode=ms.GRAPH_MODE)
    ms.set_seed(SEED)
    digits = load_digits()
    pixels = digits.images.astype(np.uint8)[:, None]  # [1797, 1, 8, 8], values 0..16
    train_images, images, train_labels, labels = train_test_split(
        pixels, digits.target, test_size=0.2, stratify=digits.target, random_state=SEED
    )
    net = DigitNet()
    train(net, train_images, train_labels, args.epochs, args.batch)
    exported = export(net, args.data / "digits.mindir")
    probabilities = exported(Tensor(scaled(images))).asnumpy()
    accuracy = np.mean(probabilities.argmax(1) == labels)
    print(f"held-out accuracy {accuracy:.4f} of {len(labels)} digits")

    # The first of each class, right or wrong: the demo shows what the model does, not its best.
    first = [int(np.argmax(labels == digit)) for digit in range(CLASSES)]
    sample = {"images": scaled(images[first]), "labels": labels[first]}
    np.savez_compressed(args.data / "digits.npz", **sample)
    reference = {"images": images, "labels": labels, "probabilities": probabilities}
    np.savez_compressed(args.reference / "digits_reference.npz", **reference)


if __name__ == "__main__":
    main()
