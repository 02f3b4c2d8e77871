"""The table of `benchmark`'s flags: their values, and those that have no effect here."""

from __future__ import annotations

from mindspore_lite.cli.flags import Flag
from mindspore_lite.settings.formats import ModelType

MODEL_TYPES = {
    "MindIR": ModelType.MINDIR,
    "MindIR_Lite": ModelType.MINDIR_LITE,
    "ONNX": ModelType.ONNX,
}
DEVICES = ("CPU", "GPU", "Ascend", "Auto")
BINDINGS = ("NO_BIND", "HIGHER_CPU", "MID_CPU")
PROVIDERS = ("litert", "tensorrt", "mindrt", "ge")
DATA_TYPES = ("FLOAT", "INT32", "INT8", "UINT8")
EVENTS = ("CYCLE", "CACHE", "STALL")

FLAGS = {
    "help": Flag("Print this.", is_bool=True),
    "modelFile": Flag("The model. Needed."),
    "modelType": Flag(f"{'|'.join(MODEL_TYPES)}. Default: as the file is called, else MindIR."),
    "inDataFile": Flag("Files of raw values, one per input: a.bin,b.bin. Default: random values."),
    "configFile": Flag("Configuration of the model."),
    "GroupInfoFile": Flag("Without effect."),
    "device": Flag(f"{'|'.join(DEVICES)}. Default: CPU."),
    "deviceId": Flag("Number of the card. Default: GPU_DEVICE_ID or ASCEND_DEVICE_ID, else 0."),
    "rankId": Flag("Without effect."),
    "provider": Flag("ge counts on Ascend, others are without effect."),
    "cpuBindMode": Flag("0 no binding, 1 big cores, 2 middle cores. Default: 1 if there is room."),
    "cpuCoreList": Flag("Cores to bind to, instead of cpuBindMode: 0,1,2."),
    "loopCount": Flag("Measured runs. Default: 10."),
    "warmUpLoopCount": Flag("Runs before these. Default: 3."),
    "numThreads": Flag("Threads of a run on the CPU. Default: 2."),
    "interOpParallelNum": Flag("Operators of a run at the same time. Default: 1."),
    "enableFp16": Flag("Compute in float16 where that is faster.", is_bool=True),
    "enableParallel": Flag("Without effect; see interOpParallelNum.", is_bool=True),
    "enableGLTexture": Flag("Without effect.", is_bool=True),
    "timeProfiling": Flag("Tell what each operator takes, and write a trace.", is_bool=True),
    "profilingTrace": Flag("Where the trace goes. Default: MODEL.trace.json, in this directory."),
    "perfProfiling": Flag("Without effect.", is_bool=True),
    "perfEvent": Flag(f"{'|'.join(EVENTS)}. Without effect."),
    "benchmarkDataFile": Flag("Expected outputs; compare with them instead of measuring."),
    "benchmarkDataType": Flag(f"{'|'.join(DATA_TYPES)}. Without effect."),
    "accuracyThreshold": Flag("Largest mean bias that passes, in percent. Default: 0.5."),
    "cosineDistanceThreshold": Flag("Least cosine that passes, from -1 to 1. Default: any."),
    "inputShape": Flag("Shapes of inputs by name: x:1,3,224,224;y:1."),
    "inputShapes": Flag("Shapes of all inputs by place: 1,3,224,224:1."),
    "decryptKey": Flag("Key of an encrypted model: 32 hexadecimal digits, @FILE or env:NAME."),
    "cryptoLibPath": Flag("Not needed, and without effect."),
    "enableParallelPredict": Flag("Let several clients use one model at once.", is_bool=True),
    "parallelNum": Flag("Clients. Default: 2."),
    "parallelTaskNum": Flag("Runs of each; -1 goes on until Ctrl-C. Default: 2."),
    "workersNum": Flag("Workers that compute. Default: 2."),
    "enableSharedThreadPool": Flag("Without effect: the cores are shared anyway.", is_bool=True),
    "threadNumLimitPerWorker": Flag("Without effect."),
    "threadNumRemainingPerWorker": Flag("Without effect."),
    "delegateMode": Flag("Without effect."),
}
IDLE = {  # flags that change nothing here, and why; none changes the outputs of a model
    "GroupInfoFile": "a model runs on one device; see MultiDeviceRunner for several",
    "rankId": "a model runs on one device; see MultiDeviceRunner for several",
    "enableParallel": "--interOpParallelNum lets operators run at the same time",
    "enableGLTexture": "there are no OpenGL textures",
    "perfProfiling": "it counts events of arm64 processors; --timeProfiling tells times",
    "cryptoLibPath": "the key is enough",
    "enableSharedThreadPool": "workers share the cores as it is",
    "threadNumLimitPerWorker": "workers share the cores as it is",
    "threadNumRemainingPerWorker": "workers share the cores as it is",
    "delegateMode": "there are no delegates",
}
