"""The entries by their names: every way by which a file or a frame comes in."""

from __future__ import annotations

from fuzzing import entries_data, entries_model, entries_server, entries_wire
from fuzzing.bad_entries import BAD
from fuzzing.case import Entry

ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("mindir", "MindIR files: read and translated", entries_model.mindir),
        Entry("onnx", "ONNX files with external data: loaded", entries_model.onnx),
        Entry("run-onnxruntime", "both kinds: built and run", entries_model.run_onnxruntime),
        Entry("run-openvino", "both kinds: built and run", entries_model.run_openvino),
        Entry("run-torch", "both kinds: built and run", entries_model.run_torch),
        Entry("convert", "ONNX, MindIR, TensorFlow: Converter", entries_model.convert),
        Entry("quantise", "models, calibration data, settings", entries_data.quantise, True),
        Entry("lora", "LoRA files: merged, updated", entries_data.lora),
        Entry("weights", ".safetensors and .npz: loaded, updated", entries_data.weights),
        Entry("config", "configuration files and dicts", entries_data.config, True),
        Entry("pt2", ".pt2 archives of torch.export", entries_data.pt2),
        Entry("repository", "folders of served models", entries_server.repository),
        Entry("wire-server", "frames of a hostile client", entries_wire.wire_server),
        Entry("wire-client", "frames of a hostile worker", entries_wire.wire_client),
    )
}


def entry_of(name: str) -> Entry:
    """An entry, also one of those that misbehave on purpose."""
    return BAD[name] if name in BAD else ENTRIES[name]
