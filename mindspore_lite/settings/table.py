"""Every setting of ours, one row each, and the names of the original's that mean nothing here.

docs/settings.md is made from these tables by scripts/settings.py. To add a setting: a row here, and
a field of Spec (spec.py) for whoever reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mindspore_lite.core.budget import DEFAULT
from mindspore_lite.core.capabilities import ENGINES as ENGINES
from mindspore_lite.settings import kinds
from mindspore_lite.settings.kinds import Kind

AUTO = "auto"
TARGETS = ("cpu", "gpu", "ascend")
ASCEND_PRECISIONS = (
    "enforce_fp32", "preferred_fp32", "enforce_fp16", "enforce_origin", "preferred_optimal",
)  # fmt: skip
PRECISIONS = ("enforce_fp32", "preferred_fp16", "preferred_bf16")


@dataclass(frozen=True)
class Key:
    """One setting. It may stand in sections of a configuration, in the Context, or in both."""

    name: str
    kind: Kind
    default: object
    reader: str  # what it is for: placement, engine, build, runner, weights; "": it has no effect
    meaning: str
    sections: tuple[str, ...] = ()
    context: str = ""  # the attribute of the Context that says the same
    target: str = ""  # the only target on which it counts
    context_first: bool = False  # the Context counts before a configuration, which fills its gaps
    since: str = "0.1"

    @property
    def id(self) -> str:
        """Its name among all: the Context's if it is there, else with the first section."""
        return self.context or f"{self.sections[0]}.{self.name}"


def _of_target(target: str) -> tuple[Key, ...]:
    """The settings that each target has in a section of its own."""
    section = (f"{target}_context",)
    known = ASCEND_PRECISIONS if target == "ascend" else PRECISIONS
    default = "enforce_fp16" if target == "ascend" else "enforce_fp32"
    return (
        Key("precision_mode", kinds.words(*known), default, "engine",
            "the types that a model is computed in", section, f"{target}.precision_mode", target),
        Key("allow_tf32", kinds.TRUTH, True, "engine", "products of float32 may round to TF32",
            section, target=target),
        Key("tuning", kinds.words("fast", "full", "off"), "off" if target == "cpu" else "fast",
            "engine", "how long the PyTorch engine searches for fast kernels", section,
            target=target),
        Key("batch_buckets", kinds.BUCKETS, (), "engine",
            "numbers of rows that a card is prepared for", section, target=target),
    )  # fmt: skip


_PARALLEL, _BATCHING = ("parallel",), ("batching", "parallel")
_SERVICE = ("service",)
_BUILD, _COMMON, _WEIGHTS = ("build",), ("common_context",), ("ascend_context", "common_context")

KEYS = (
    Key("target", kinds.words(*TARGETS), ["cpu"], "placement", "where a model runs, the first one",
        context="target"),
    Key("device_id", kinds.NUMBER, 0, "placement", "the card", context="gpu.device_id",
        target="gpu"),
    Key("device_id", kinds.NUMBER, 0, "placement", "the card", context="ascend.device_id",
        target="ascend"),
    Key("device_ids", kinds.IDS, [], "placement", "the cards of a runner, each with the weights",
        _PARALLEL, "parallel.device_ids", since="0.2"),
    Key("workers_num", kinds.NUMBER, 0, "placement", "requests at the same time; 0 is automatic",
        _PARALLEL, "parallel.workers_num", context_first=True),
    Key("thread_num", kinds.NUMBER, 0, "placement", "threads of a request; 0 is automatic",
        _PARALLEL, "cpu.thread_num", context_first=True),
    Key("inter_op_parallel_num", kinds.NUMBER, 0, "placement",
        "operators of a request at the same time", context="cpu.inter_op_parallel_num"),
    Key("thread_affinity_mode", kinds.NUMBER, 0, "placement",
        "1 binds threads to big cores, 2 to middle ones", context="cpu.thread_affinity_mode"),
    Key("thread_affinity_core_list", kinds.IDS, [], "placement", "the cores to bind to",
        context="cpu.thread_affinity_core_list"),
    Key("engine", kinds.words(*ENGINES, AUTO), "", "engine",
        "what computes; auto is what `mslite bench --tune` measured", _COMMON),
    Key("profile", kinds.TEXT, "", "engine", "where Model.close() writes a trace of the operators",
        _COMMON),
    Key("bfloat16", kinds.exact("float32", "strict"), "float32", "build",
        "strict: round after each operator of a MindIR, as MindSpore does; else only at the end",
        _COMMON),
    *(key for target in TARGETS for key in _of_target(target)),
    Key("queue_size", kinds.POSITIVE, 1000, "runner", "how many requests may wait", _PARALLEL,
        "parallel.queue_size", since="0.2"),
    Key("timeout_s", kinds.SECONDS, 0.0, "runner", "seconds a request may take; 0 is no limit",
        _PARALLEL, "parallel.timeout_s", context_first=True),
    Key("max_batch_rows", kinds.NUMBER, 0, "runner",
        "up to how many rows requests are joined; 0 is never on the CPU", _BATCHING,
        "parallel.max_batch_rows", context_first=True),
    Key("max_batch_wait_us", kinds.NUMBER, 0, "runner", "how long a request waits for others",
        _BATCHING, "parallel.max_batch_wait_us", context_first=True),
    Key("warm_up", kinds.FLAG, True, "runner", "whether a build runs the model once", _PARALLEL,
        "parallel.warm_up", since="0.2"),
    Key("max_nodes", kinds.SIZE, DEFAULT.max_nodes, "build",
        "nodes after all functions and graphs are inlined", _BUILD),
    Key("max_fold_bytes", kinds.SIZE, DEFAULT.max_fold_bytes, "build",
        "bytes of constants computed ahead; 0 is 1G and 4 times the weights", _BUILD),
    Key("max_seconds", kinds.SIZE, DEFAULT.max_seconds, "build",
        "CPU time of translating, and time of each compiling call", _BUILD),
    Key("max_run_seconds", kinds.SIZE, DEFAULT.max_run_seconds, "build",
        "time of warming up and of trial runs; 0 follows max_seconds and timeout_s", _BUILD),
    Key("sandbox", kinds.ON_OFF, DEFAULT.sandbox, "build", "on: compile in a jailed process",
        _BUILD),
    Key("require_authenticated", kinds.ON_OFF, DEFAULT.require_authenticated, "build",
        "on: only models that AES-GCM shows to be unchanged", _BUILD, since="0.2"),
    Key("variable_weights_file", kinds.TEXT, "", "weights", "a file that names weights which "
        "may change", _WEIGHTS),
    Key("variable_weights_list", kinds.TEXT, "", "weights", "such names, with commas", _WEIGHTS),
    Key("variable_weights_lines", kinds.TEXT, "", "weights", "the lines of such a file", _WEIGHTS),
    Key("variable_weights_mode", kinds.exact("replace", "delta"), "replace", "weights",
        "whether updates replace weights or are added", _WEIGHTS),
    Key("variable_weights_layout", kinds.exact("graph", "framework"), "graph", "weights",
        "how square matrices of updates lie: as in the graph, or as in PyTorch", _WEIGHTS,
        since="0.2"),
    Key("shareable_weight_pid_list", kinds.PIDS, None, "weights",
        "processes that may use these weights", _WEIGHTS),
    Key("shareable_weight_mem_handle", kinds.HANDLE, None, "weights",
        "another process's weights, to be used", _WEIGHTS),
    Key("mindir_path", kinds.TEXT, "", "build", "beside which file the weights lie",
        ("model_file",)),
    Key("input_shape", kinds.SHAPES, "", "build",
        "shapes of inputs, -1 for open sizes; checked against the model", ("ascend_context",),
        target="ascend", since="0.2"),
    Key("dynamic_dims", kinds.PROFILES, "", "build",
        "the sizes that its open ones may have; checked against the model", ("ascend_context",),
        target="ascend", since="0.2"),
    Key("name", kinds.TEXT, "", "worker", "by which clients of a worker share a model", _SERVICE,
        since="0.2"),
    Key("version", kinds.TEXT, "", "worker", "which of several models of the name", _SERVICE,
        since="0.2"),
    Key("group_info_file", kinds.TEXT, "", "", "kept", context="group_info_file"),
    Key("rank_id", kinds.NUMBER, 0, "", "kept", context="gpu.rank_id", target="gpu"),
    Key("rank_id", kinds.NUMBER, 0, "", "kept", context="ascend.rank_id", target="ascend"),
    Key("provider", kinds.TEXT, "", "", "kept", context="ascend.provider", target="ascend"),
)  # fmt: skip

_SERVE = ("serve",)

# Of model.ini in the folder of a served model, next to the sections above (server/repository/). The
# last four may stand among the `parameters` of config.pbtxt as well.
SERVE_KEYS = (
    Key("max_batch_size", kinds.NUMBER, 0, "server",
        "rows that a request may have; if it is not 0, the first dim of all inputs and outputs is "
        "the batch", _SERVE, since="0.2"),
    Key("versions", kinds.VERSIONS, ("latest", "1"), "server", "which versions are served", _SERVE,
        since="0.2"),
    Key("file", kinds.TEXT, "", "server",
        "the model file in the folder of a version; else model.onnx or model.mindir", _SERVE,
        since="0.2"),
    Key("labels", kinds.TEXT, "", "server",
        "files with the names of classes, a line each: OUTPUT:FILE, with commas between them",
        _SERVE, since="0.2"),
    Key("target", kinds.words(*TARGETS), "", "server", "where it runs; else as the server says",
        _SERVE, since="0.2"),
    Key("share", kinds.SHARE, 1.0, "server", "of the cores, against other models", _SERVE,
        since="0.2"),
    Key("isolation", kinds.words("thread", "process"), "", "server",
        "process: in a process of its own; else as the server says", _SERVE, since="0.2"),
    Key("cache_bytes", kinds.BYTES, 0, "server", "of answers that are kept for equal requests",
        _SERVE, since="0.2"),
    Key("evictable", kinds.FLAG, False, "server",
        "whether it may be unloaded while nobody uses it, and memory is short", _SERVE,
        since="0.2"),
)  # fmt: skip

# (section, key) -> the rows that it may mean: on different targets, one each
ENTRIES = {(section, key.name): key for key in KEYS for section in key.sections}
SECTIONS = tuple(dict.fromkeys(section for section, _ in ENTRIES))  # that we know keys of


def _names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())


# Keys of the original in sections that have ours as well. Other keys are let pass there unless they
# resemble one of ours: the original hands many on to compilers of Ascend.
ORIGINAL_KEYS = {
    "ascend_context": _names(
        "aoe_mode buffer_optimize buffer_optimize_mode custom_fusion_pattern device_id",
        "dump_config_file dump_model_name dynamic_batch_size dynamic_image_size",
        "enable_custom_op fusion_switch_config_file_path ge_graph_memory_max_size",
        "ge_variable_memory_max_size input_format inputs_to_variable",
        "insert_op_config_file_path max_batch_size max_seq_length max_weight_batch",
        "mixprecision_list_path model_cache_dir model_cache_mode om_file_path op-attrs op_attrs",
        "op_select_impl_mode output_type outputs_to_variable parameter_as_refdata",
        "plugin_custom_ops profiling_config_file provider rank_id rank_table_file",
        "stream_label_file",
    ),
    "gpu_context": _names(
        "device_id dump_dir dump_ops dynamic_dims input_shape opt_dims serialize_path"
    ),
    "common_context": _names("model_cache_dir"),
}
# Sections of the original, for its runtime and its converter, that have no effect on a build here.
ORIGINAL_SECTIONS = _names(
    "acl_build_options acl_init_options acl_option_cfg_param aoe_global_options aoe_tuning_options",
    "common_quant_param converter_params cpu_option_cfg_param data_preprocess_param",
    "dynamic_quant_param execution_plan full_quant_param ge_global_options ge_graph_options",
    "ge_session_options graph_kernel_param inner_common inner_model_parallel_runner",
    "lite_inner_group micro_param mixed_bit_weight_quant_param model_param ms_cache om_converter",
    "registry shared_thread_pool transformer_context weight",
)
