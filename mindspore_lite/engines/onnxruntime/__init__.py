"""The engine of ONNX Runtime; its environment is set before the runtime is first imported."""

from mindspore_lite.core.environment import preset

# Official builds of 1.31 and later report to their maker from a thread of their own, which also
# keeps a forked child from exiting. Read at import; a user who sets the variable decides himself.
preset("ORT_DISABLE_TELEMETRY", "1")
