from __future__ import annotations

from pathlib import Path

from mindspore_lite.core.cpu_name import cpu_name


def test_the_processor_is_named_where_the_kernel_names_it(tmp_path: Path) -> None:
    assert cpu_name(tmp_path / "nowhere")  # the architecture
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: Fast CPU\nflags : avx\n")
    assert cpu_name(tmp_path) == "Fast CPU"
