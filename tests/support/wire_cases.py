"""The vectors themselves: one conversation with a worker in steps, every error, and what is wrong.

The conversation is one that a client can have: the numbers of requests, models and blocks go on
from file to file. Its model, "twice", has an input x and an output y = 2 x, float32 [-1, 2].
"""

from __future__ import annotations

import struct

from support.wire_vectors import Field, Part, Vector, frame, place, tensor, text

HELLO = b"MSLITE\r\n"
TOKEN = bytes(range(16, 32))
PID = 4321
FLOAT32, UINT8 = 43, 37
X = struct.pack("<4f", 1, 2, 3, 4)
Y = struct.pack("<4f", 2, 4, 6, 8)
LARGE = [4096, 2]  # 32 KiB, which does not travel in the frame

ERRORS = {  # kind: (code, message, detail)
    "LiteError": (-1, "something failed", ""),
    "ModelFileError": (-200, "/models/twice.mindir: no MindIR", ""),
    "UnsupportedOpError": (-300, "1 operator is not implemented: Frobnicate (node 3)", ""),
    "SettingsError": (-3, "thread_num is -1, wanted 0 or more", ""),
    "ShapeError": (-501, "input 'x' cannot have shape [2, 3]", ""),
    "InputError": (-101, "predict failed! input 'x' has 3 bytes, wanted 8", ""),
    "EngineError": (-1, "predict failed!", "RuntimeError: Add: dims do not fit"),
    "EngineUnavailableError": (-7, "target 'gpu' needs another engine", ""),
    "StoppedError": (-1, "the run was stopped", ""),
    "QueueFullError": (-11, "1000 requests are waiting already", ""),
    "RequestTimeoutError": (0x1000000E, "no answer within timeout_s=0.25", ""),
    "ClosedError": (-9, "there is no model 1; was it closed?", ""),
    "CancelledError": (0x10000003, "the request was cancelled", ""),
    "ResourceError": (-6, "there are 4096 blocks already; free some", ""),
    "WireError": (0x10000010, "there is no block 9; was it freed?", ""),
    "WorkerDiedError": (1, "the worker of device 0 ended", "killed by signal 9\nlast words"),
    "TypeError": (-3, "a name must be text", ""),
    "ValueError": (-3, "there is no setting 'cpu.threads'", ""),
}


def hello(token: bytes = bytes(16)) -> Part:
    """What a client says first."""
    return Part("client", tuple(hello_fields(token=token)))


def hello_fields(
    *,
    magic: bytes = HELLO,
    lowest: int = 2,
    highest: int = 2,
    reserved: int = 0,
    token: bytes = bytes(16),
) -> list[Field]:
    """The client's greeting."""
    return [
        Field("bytes", "magic", magic),
        Field("u16", "lowest", lowest),
        Field("u16", "highest", highest),
        Field("u32", "reserved", reserved),
        Field("bytes", "token", token),
    ]


def welcome_fields(
    version: int, code: int, token: bytes, words: str, magic: bytes = HELLO
) -> list[Field]:
    """The worker's greeting."""
    return [
        Field("bytes", "magic", magic),
        Field("u16", "version", version),
        Field("u16", "reserved", 0),
        Field("i32", "code", code),
        Field("bytes", "token", token),
        Field("u32", "pid", PID),
        text("text", words),
    ]


def _asked(*fields: Field) -> Part:
    return Part("client", fields)


def _told(*fields: Field) -> Part:
    return Part("worker", fields)


def _ends(rows: int) -> list[Field]:
    """The description of the model."""
    return [
        Field("u32", "inputs", 1),
        *tensor("inputs.0", "x", FLOAT32, [rows, 2], None),
        Field("u32", "outputs", 1),
        *tensor("outputs.0", "y", FLOAT32, [rows, 2], None),
    ]


def _pairs(prefix: str, pairs: dict[str, str]) -> list[Field]:
    found = [Field("u32", prefix, len(pairs))]
    for i, (name, value) in enumerate(pairs.items()):
        found += [text(f"{prefix}.{i}.name", name), text(f"{prefix}.{i}.value", value)]
    return found


def predict_fields(
    room: tuple[int, int, int], timeout_us: int, *inputs: Field, priority: int = 0
) -> list[Field]:
    """The body of a PREDICT of model 1 with one input."""
    return [
        Field("u32", "model", 1),
        Field("u64", "timeout_us", timeout_us),
        Field("i8", "priority", priority),
        *place("room", *room),
        Field("u32", "inputs", 1),
        *inputs,
    ]


def _made(*blocks: tuple[int, int, int]) -> list[Field]:
    found = [Field("u32", "blocks", len(blocks))]
    for i, (number, descriptor, size) in enumerate(blocks):
        found.append(Field("u32", f"blocks.{i}.block", number))
        found.append(Field("u32", f"blocks.{i}.descriptor", descriptor))
        found.append(Field("u64", f"blocks.{i}.size", size))
    return found


def greetings() -> list[Vector]:
    """Both ways to begin, and a polite refusal."""
    address = "/run/user/1000/twice.sock"
    new = _told(*welcome_fields(2, 0, TOKEN, address))
    full = Part(
        "worker",
        tuple(welcome_fields(0, -6, bytes(16), "there are 1024 connections already")),
        "refuse",
        "there are 1024 connections already",
    )
    return [
        Vector("01-greeting", "A client opens a session.", (hello(), new)),
        Vector(
            "02-greeting-lane",
            "The same client opens another connection, a lane of the session.",
            (hello(token=TOKEN), new),
        ),
        Vector("refused-full", "A worker that has no room for a client.", (hello(), full)),
    ]


def builds() -> list[Vector]:
    """A model from a file, and one from bytes."""
    by_path = [
        Field("u8", "kind", 0),
        Field("u32", "model_type", 0),
        text("path", "/models/twice.mindir"),
        Field("u32", "content", 0),
        *_pairs("settings", {"target": "cpu", "cpu.thread_num": "2"}),
        text("config_path", ""),
        Field("u32", "config", 1),
        text("config.0.section", "ascend_context"),
        text("config.0.name", "precision_mode"),
        text("config.0.value", "enforce_fp32"),
        Field("blob", "key", b""),
        text("key_mode", ""),
    ]
    by_bytes = [
        Field("u8", "kind", 1),
        Field("u32", "model_type", 3),
        text("path", ""),
        Field("u32", "content", 2),
        *tensor("content.0", "model", UINT8, [5], b"model"),
        *tensor("content.1", "weights", UINT8, [0], b""),
        *_pairs("settings", {}),
        text("config_path", "/etc/mslite/runner.ini"),
        Field("u32", "config", 0),
        Field("blob", "key", bytes.fromhex("000102030405060708090a0b0c0d0e0f")),
        text("key_mode", "AES-GCM"),
    ]
    notes = [
        Field("u32", "notes", 1),
        text("notes.0", "'target' is given twice \u2013 \\ the last one counts"),
    ]
    return [
        Vector(
            "03-build",
            "BUILD of a Model from a file, with two settings and one entry of a configuration.",
            (
                _asked(*frame("BUILD", 1, *by_path)),
                _told(*frame("BUILD_FINISH", 1, Field("u32", "model", 1), *_ends(-1), *notes)),
            ),
        ),
        Vector(
            "04-build-content",
            "BUILD of a ModelParallelRunner from bytes in the frame, with weights and a key.",
            (
                _asked(*frame("BUILD", 2, *by_bytes)),
                _told(
                    *frame(
                        "BUILD_FINISH",
                        2,
                        Field("u32", "model", 2),
                        *_ends(-1),
                        Field("u32", "notes", 0),
                    )
                ),
            ),
        ),
    ]


def runs() -> list[Vector]:
    """PREDICT with small tensors, then with large ones, without and with room for outputs."""
    large_x = tensor("inputs.0", "x", FLOAT32, LARGE, (3, 0, 32768))
    large_y = tensor("outputs.0", "y", FLOAT32, LARGE, (4, 0, 32768))
    outputs = Field("u32", "outputs", 1)
    return [
        Vector(
            "05-predict",
            "PREDICT with data in the frame, within 120 s, of priority -3.",
            (
                _asked(
                    *frame(
                        "PREDICT",
                        3,
                        *predict_fields(
                            (0, 0, 0),
                            120_000_000,
                            *tensor("inputs.0", "x", FLOAT32, [2, 2], X),
                            priority=-3,
                        ),
                    )
                ),
                _told(
                    *frame(
                        "REPLY",
                        3,
                        *_made(),
                        outputs,
                        *tensor("outputs.0", "y", FLOAT32, [2, 2], Y),
                    )
                ),
            ),
        ),
        Vector(
            "06-allocate",
            "ALLOCATE a block of 64 KiB; the client opens /proc/4321/fd/9.",
            (
                _asked(*frame("ALLOCATE", 4, Field("u64", "size", 65536))),
                _told(*frame("REPLY", 4, *_made((3, 9, 65536)))),
            ),
        ),
        Vector(
            "07-predict-block",
            "PREDICT with the input in block 3; the worker makes block 4 for the output.",
            (
                _asked(*frame("PREDICT", 5, *predict_fields((0, 0, 0), 0, *large_x))),
                _told(*frame("REPLY", 5, *_made((4, 10, 32768)), outputs, *large_y)),
            ),
        ),
        Vector(
            "08-predict-room",
            "PREDICT once more, with block 4 as room for the output.",
            (
                _asked(*frame("PREDICT", 6, *predict_fields((4, 0, 32768), 0, *large_x))),
                _told(*frame("REPLY", 6, *_made(), outputs, *large_y)),
            ),
        ),
    ]


def _both(message: str, number: int, body: list[Field], answer: list[Field]) -> tuple[Part, Part]:
    told = frame(_ANSWERS.get(message, "REPLY"), number, *answer)
    return _asked(*frame(message, number, *body)), _told(*told)


_ANSWERS = {"DERIVE": "BUILD_FINISH"}  # others are answered by REPLY


def others() -> list[Vector]:
    """Every other request."""
    model = Field("u32", "model", 1)
    weights = [
        model,
        Field("u32", "groups", 2),
        Field("u32", "groups.0", 1),
        *tensor("groups.0.0", "factor", FLOAT32, [], struct.pack("<f", 2)),
        Field("u32", "groups.1", 1),
        *tensor("groups.1.0", "", FLOAT32, [], struct.pack("<f", 3)),
    ]
    restored = [model, Field("u32", "groups", 0)]
    shapes = [model, Field("u32", "shapes", 1), Field("dims", "shapes.0", [4, 2])]
    rows: list[tuple[str, str, str, list[Field], list[Field]]] = [
        ("describe", "the ends of model 1", "DESCRIBE", [model], _ends(-1)),
        ("resize", "the input of model 1 becomes [4, 2]", "RESIZE", shapes, _ends(4)),
        (
            "update-weights", "a weight by its name, then the first one of the list",
            "UPDATE_WEIGHTS", weights, [],
        ),
        ("restore-weights", "all weights of the file again", "UPDATE_WEIGHTS", restored, []),
        (
            "info", "a fact about model 1", "INFO",
            [model, text("key", "author")], [text("value", "J\u00fcrgen")],
        ),
        (
            "statistics", "what model 1 did so far", "STATISTICS",
            [model], [text("statistics", '{"requests": 3}')],
        ),
        (
            "cancel", "request 6, which ended before; wait a second at most", "CANCEL",
            [Field("u64", "request", 6), Field("u64", "wait_us", 1_000_000)],
            [Field("u8", "answer", 0)],
        ),
        (
            "free", "blocks 3 and 4", "FREE",
            [Field("u32", "blocks", 2), Field("u32", "blocks.0", 3), Field("u32", "blocks.1", 4)],
            [],
        ),
        (
            "close", "model 1; requests under way have two seconds", "CLOSE",
            [model, Field("u64", "drain_us", 2_000_000)], [],
        ),
        (
            "derive", "model 2 with other weights, as model 5",
            "DERIVE", [Field("u32", "model", 2), *weights[1:]],
            [Field("u32", "model", 5), *_ends(4), Field("u32", "notes", 0)],
        ),
        ("exit", "the client needs nothing any more", "EXIT", [text("words", "bye")], []),
    ]  # fmt: skip
    return [
        Vector(
            f"{number + 2:02}-{name}",
            f"{message}: {about}.",
            _both(message, number, body, answer),
        )
        for number, (name, about, message, body, answer) in enumerate(rows, 7)
    ]


def faults() -> list[Vector]:
    """ERROR of every kind."""
    found = []
    for kind, (code, message, detail) in ERRORS.items():
        body = [
            Field("i32", "code", code),
            text("kind", kind),
            text("message", message),
            text("detail", detail),
        ]
        told = _told(*frame("ERROR", 3, *body))
        found.append(Vector(f"error-{kind}", f"ERROR: {kind} as the answer.", (told,)))
    return found


VECTORS = [*greetings(), *builds(), *runs(), *others(), *faults()]
