from __future__ import annotations

from onnx import TensorProto, helper
from support.onnx_graphs import F32, node

from mindspore_lite.passes.scratch import scratch_bytes


def skeleton(nodes: list[object], shape: list[int | str], output: str = "y") -> bytes:
    ends = [helper.make_tensor_value_info(name, F32, dims) for name, dims in
            (("x", shape), (output, None))]  # fmt: skip
    graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 21)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return bytes(made.SerializeToString())


CHAIN = [node("Exp", ["x"], ["a"]), node("Sin", ["a"], ["b"]), node("Cos", ["b"], ["y"])]


def test_a_chain_needs_two_results_at_a_time() -> None:
    assert scratch_bytes(skeleton(CHAIN, [1000])) == 2 * 4000


def test_a_result_that_is_read_again_later_stays() -> None:
    nodes = [*CHAIN[:2], node("Cos", ["b"], ["c"]), node("Mul", ["c", "a"], ["y"])]
    assert scratch_bytes(skeleton(nodes, [1000])) == 3 * 4000


def test_an_output_stays_to_the_end() -> None:
    nodes = [node("Exp", ["x"], ["y"]), node("Exp", ["x"], ["a"]), node("Exp", ["a"], ["b"])]
    assert scratch_bytes(skeleton(nodes, [1000])) == 3 * 4000


def test_types_count_by_their_size() -> None:
    nodes = [
        node("Cast", ["x"], ["a"], to=TensorProto.DOUBLE),
        node("Sin", ["a"], ["b"]),
        node("Cast", ["b"], ["y"], to=TensorProto.FLOAT),
    ]
    assert scratch_bytes(skeleton(nodes, [1000])) == 2 * 8000


def test_an_open_size_counts_as_one() -> None:
    assert scratch_bytes(skeleton(CHAIN, ["rows", 1000])) == 2 * 4000


def test_a_size_that_depends_on_data_counts_nothing() -> None:
    nodes = [node("NonZero", ["x"], ["a"]), node("Cast", ["a"], ["y"], to=TensorProto.FLOAT)]
    assert scratch_bytes(skeleton(nodes, [1000])) == 0


def test_what_a_branch_reads_stays_until_then() -> None:
    end = [helper.make_tensor_value_info("t", F32, [1000])]
    branch = helper.make_graph([node("Neg", ["a"], ["t"])], "branch", [], end)
    nodes = [
        node("Exp", ["x"], ["a"]),
        node("Constant", [], ["p"], value_ints=[1]),
        node("Cast", ["p"], ["q"], to=TensorProto.BOOL),
        node("Exp", ["x"], ["c"]),
        node("Sin", ["c"], ["d"]),
        node("If", ["q"], ["e"], then_branch=branch, else_branch=branch),
        node("Add", ["d", "e"], ["y"]),
    ]
    assert scratch_bytes(skeleton(nodes, [1000])) == 3 * 4000 + 1  # and the bool
