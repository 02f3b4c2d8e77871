from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Attribute(_message.Message):
    __slots__ = ("name", "f", "i", "d", "s", "t", "floats", "doubles", "ints", "strings", "tensors", "ref_attr_name", "type", "values", "seq_info")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNDEFINED: _ClassVar[Attribute.Type]
        FLOAT: _ClassVar[Attribute.Type]
        UINT8: _ClassVar[Attribute.Type]
        INT8: _ClassVar[Attribute.Type]
        UINT16: _ClassVar[Attribute.Type]
        INT16: _ClassVar[Attribute.Type]
        INT32: _ClassVar[Attribute.Type]
        INT64: _ClassVar[Attribute.Type]
        STRING: _ClassVar[Attribute.Type]
        BOOL: _ClassVar[Attribute.Type]
        FLOAT16: _ClassVar[Attribute.Type]
        DOUBLE: _ClassVar[Attribute.Type]
        UINT32: _ClassVar[Attribute.Type]
        UINT64: _ClassVar[Attribute.Type]
        COMPLEX64: _ClassVar[Attribute.Type]
        COMPLEX128: _ClassVar[Attribute.Type]
        BFLOAT16: _ClassVar[Attribute.Type]
        TENSOR: _ClassVar[Attribute.Type]
        GRAPH: _ClassVar[Attribute.Type]
        TENSORS: _ClassVar[Attribute.Type]
        TUPLE: _ClassVar[Attribute.Type]
        LIST: _ClassVar[Attribute.Type]
        DICT: _ClassVar[Attribute.Type]
        UMONAD: _ClassVar[Attribute.Type]
        IOMONAD: _ClassVar[Attribute.Type]
        NONE: _ClassVar[Attribute.Type]
        PRIMITIVECLOSURE: _ClassVar[Attribute.Type]
        FUNCGRAPHCLOSURE: _ClassVar[Attribute.Type]
        PARTIALCLOSURE: _ClassVar[Attribute.Type]
        UNIONFUNCCLOSURE: _ClassVar[Attribute.Type]
        CSR_TENSOR: _ClassVar[Attribute.Type]
        COO_TENSOR: _ClassVar[Attribute.Type]
        ROW_TENSOR: _ClassVar[Attribute.Type]
        CLASS_TYPE: _ClassVar[Attribute.Type]
        NAME_SPACE: _ClassVar[Attribute.Type]
        SYMBOL: _ClassVar[Attribute.Type]
        TYPE_NULL: _ClassVar[Attribute.Type]
        MAP_TENSOR: _ClassVar[Attribute.Type]
        FUNCTOR: _ClassVar[Attribute.Type]
        SCALAR: _ClassVar[Attribute.Type]
        SCALAR_GRAPH_HOLDER: _ClassVar[Attribute.Type]
    UNDEFINED: Attribute.Type
    FLOAT: Attribute.Type
    UINT8: Attribute.Type
    INT8: Attribute.Type
    UINT16: Attribute.Type
    INT16: Attribute.Type
    INT32: Attribute.Type
    INT64: Attribute.Type
    STRING: Attribute.Type
    BOOL: Attribute.Type
    FLOAT16: Attribute.Type
    DOUBLE: Attribute.Type
    UINT32: Attribute.Type
    UINT64: Attribute.Type
    COMPLEX64: Attribute.Type
    COMPLEX128: Attribute.Type
    BFLOAT16: Attribute.Type
    TENSOR: Attribute.Type
    GRAPH: Attribute.Type
    TENSORS: Attribute.Type
    TUPLE: Attribute.Type
    LIST: Attribute.Type
    DICT: Attribute.Type
    UMONAD: Attribute.Type
    IOMONAD: Attribute.Type
    NONE: Attribute.Type
    PRIMITIVECLOSURE: Attribute.Type
    FUNCGRAPHCLOSURE: Attribute.Type
    PARTIALCLOSURE: Attribute.Type
    UNIONFUNCCLOSURE: Attribute.Type
    CSR_TENSOR: Attribute.Type
    COO_TENSOR: Attribute.Type
    ROW_TENSOR: Attribute.Type
    CLASS_TYPE: Attribute.Type
    NAME_SPACE: Attribute.Type
    SYMBOL: Attribute.Type
    TYPE_NULL: Attribute.Type
    MAP_TENSOR: Attribute.Type
    FUNCTOR: Attribute.Type
    SCALAR: Attribute.Type
    SCALAR_GRAPH_HOLDER: Attribute.Type
    NAME_FIELD_NUMBER: _ClassVar[int]
    F_FIELD_NUMBER: _ClassVar[int]
    I_FIELD_NUMBER: _ClassVar[int]
    D_FIELD_NUMBER: _ClassVar[int]
    S_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    DOUBLES_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    REF_ATTR_NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    SEQ_INFO_FIELD_NUMBER: _ClassVar[int]
    name: str
    f: float
    i: int
    d: float
    s: bytes
    t: Tensor
    floats: _containers.RepeatedScalarFieldContainer[float]
    doubles: _containers.RepeatedScalarFieldContainer[float]
    ints: _containers.RepeatedScalarFieldContainer[int]
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    ref_attr_name: str
    type: Attribute.Type
    values: _containers.RepeatedCompositeFieldContainer[Attribute]
    seq_info: SeqInfo
    def __init__(self, name: _Optional[str] = ..., f: _Optional[float] = ..., i: _Optional[int] = ..., d: _Optional[float] = ..., s: _Optional[bytes] = ..., t: _Optional[_Union[Tensor, _Mapping]] = ..., floats: _Optional[_Iterable[float]] = ..., doubles: _Optional[_Iterable[float]] = ..., ints: _Optional[_Iterable[int]] = ..., strings: _Optional[_Iterable[bytes]] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., ref_attr_name: _Optional[str] = ..., type: _Optional[_Union[Attribute.Type, str]] = ..., values: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., seq_info: _Optional[_Union[SeqInfo, _Mapping]] = ...) -> None: ...

class SeqInfo(_message.Message):
    __slots__ = ("is_dyn_len", "tuple_elem_item")
    IS_DYN_LEN_FIELD_NUMBER: _ClassVar[int]
    TUPLE_ELEM_ITEM_FIELD_NUMBER: _ClassVar[int]
    is_dyn_len: bool
    tuple_elem_item: Attribute
    def __init__(self, is_dyn_len: bool = ..., tuple_elem_item: _Optional[_Union[Attribute, _Mapping]] = ...) -> None: ...

class ValueInfo(_message.Message):
    __slots__ = ("name", "tensor", "denotation", "attr_info")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    DENOTATION_FIELD_NUMBER: _ClassVar[int]
    ATTR_INFO_FIELD_NUMBER: _ClassVar[int]
    name: str
    tensor: _containers.RepeatedCompositeFieldContainer[Tensor]
    denotation: str
    attr_info: Attribute
    def __init__(self, name: _Optional[str] = ..., tensor: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., denotation: _Optional[str] = ..., attr_info: _Optional[_Union[Attribute, _Mapping]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("input", "output", "name", "op_type", "attribute", "domain")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    input: _containers.RepeatedScalarFieldContainer[str]
    output: _containers.RepeatedScalarFieldContainer[str]
    name: str
    op_type: str
    attribute: _containers.RepeatedCompositeFieldContainer[Attribute]
    domain: str
    def __init__(self, input: _Optional[_Iterable[str]] = ..., output: _Optional[_Iterable[str]] = ..., name: _Optional[str] = ..., op_type: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., domain: _Optional[str] = ...) -> None: ...

class ExternalData(_message.Message):
    __slots__ = ("location", "offset", "length")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    location: str
    offset: int
    length: int
    def __init__(self, location: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ...) -> None: ...

class QuantParam(_message.Message):
    __slots__ = ("quant_algo_name", "attribute")
    QUANT_ALGO_NAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    quant_algo_name: str
    attribute: _containers.RepeatedCompositeFieldContainer[Attribute]
    def __init__(self, quant_algo_name: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ...) -> None: ...

class Tensor(_message.Message):
    __slots__ = ("dims", "data_type", "float_data", "int32_data", "string_data", "int64_data", "name", "raw_data", "double_data", "uint64_data", "external_data", "ref_key", "compression_type", "quant_params")
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    FLOAT_DATA_FIELD_NUMBER: _ClassVar[int]
    INT32_DATA_FIELD_NUMBER: _ClassVar[int]
    STRING_DATA_FIELD_NUMBER: _ClassVar[int]
    INT64_DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RAW_DATA_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_DATA_FIELD_NUMBER: _ClassVar[int]
    UINT64_DATA_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DATA_FIELD_NUMBER: _ClassVar[int]
    REF_KEY_FIELD_NUMBER: _ClassVar[int]
    COMPRESSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    QUANT_PARAMS_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    data_type: int
    float_data: _containers.RepeatedScalarFieldContainer[float]
    int32_data: _containers.RepeatedScalarFieldContainer[int]
    string_data: _containers.RepeatedScalarFieldContainer[bytes]
    int64_data: _containers.RepeatedScalarFieldContainer[int]
    name: str
    raw_data: bytes
    double_data: _containers.RepeatedScalarFieldContainer[float]
    uint64_data: _containers.RepeatedScalarFieldContainer[int]
    external_data: ExternalData
    ref_key: str
    compression_type: int
    quant_params: _containers.RepeatedCompositeFieldContainer[QuantParam]
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., data_type: _Optional[int] = ..., float_data: _Optional[_Iterable[float]] = ..., int32_data: _Optional[_Iterable[int]] = ..., string_data: _Optional[_Iterable[bytes]] = ..., int64_data: _Optional[_Iterable[int]] = ..., name: _Optional[str] = ..., raw_data: _Optional[bytes] = ..., double_data: _Optional[_Iterable[float]] = ..., uint64_data: _Optional[_Iterable[int]] = ..., external_data: _Optional[_Union[ExternalData, _Mapping]] = ..., ref_key: _Optional[str] = ..., compression_type: _Optional[int] = ..., quant_params: _Optional[_Iterable[_Union[QuantParam, _Mapping]]] = ...) -> None: ...

class Graph(_message.Message):
    __slots__ = ("node", "name", "parameter", "input", "output", "attribute", "map_parameter")
    NODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    MAP_PARAMETER_FIELD_NUMBER: _ClassVar[int]
    node: _containers.RepeatedCompositeFieldContainer[Node]
    name: str
    parameter: _containers.RepeatedCompositeFieldContainer[Tensor]
    input: _containers.RepeatedCompositeFieldContainer[ValueInfo]
    output: _containers.RepeatedCompositeFieldContainer[ValueInfo]
    attribute: _containers.RepeatedCompositeFieldContainer[Attribute]
    map_parameter: _containers.RepeatedCompositeFieldContainer[MapTensor]
    def __init__(self, node: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., name: _Optional[str] = ..., parameter: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., input: _Optional[_Iterable[_Union[ValueInfo, _Mapping]]] = ..., output: _Optional[_Iterable[_Union[ValueInfo, _Mapping]]] = ..., attribute: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., map_parameter: _Optional[_Iterable[_Union[MapTensor, _Mapping]]] = ...) -> None: ...

class MapTensor(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class Primitive(_message.Message):
    __slots__ = ("name", "op_type", "attribute", "prim_type")
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_TYPE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    PRIM_TYPE_FIELD_NUMBER: _ClassVar[int]
    name: str
    op_type: str
    attribute: _containers.RepeatedCompositeFieldContainer[Attribute]
    prim_type: int
    def __init__(self, name: _Optional[str] = ..., op_type: _Optional[str] = ..., attribute: _Optional[_Iterable[_Union[Attribute, _Mapping]]] = ..., prim_type: _Optional[int] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("ir_version", "producer_name", "producer_version", "model_version", "graph", "functions", "little_endian", "primitives", "mind_ir_version", "user_info")
    class UserInfoEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    IR_VERSION_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_NAME_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_VERSION_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    GRAPH_FIELD_NUMBER: _ClassVar[int]
    FUNCTIONS_FIELD_NUMBER: _ClassVar[int]
    LITTLE_ENDIAN_FIELD_NUMBER: _ClassVar[int]
    PRIMITIVES_FIELD_NUMBER: _ClassVar[int]
    MIND_IR_VERSION_FIELD_NUMBER: _ClassVar[int]
    USER_INFO_FIELD_NUMBER: _ClassVar[int]
    ir_version: str
    producer_name: str
    producer_version: str
    model_version: str
    graph: Graph
    functions: _containers.RepeatedCompositeFieldContainer[Graph]
    little_endian: bool
    primitives: _containers.RepeatedCompositeFieldContainer[Primitive]
    mind_ir_version: int
    user_info: _containers.ScalarMap[str, str]
    def __init__(self, ir_version: _Optional[str] = ..., producer_name: _Optional[str] = ..., producer_version: _Optional[str] = ..., model_version: _Optional[str] = ..., graph: _Optional[_Union[Graph, _Mapping]] = ..., functions: _Optional[_Iterable[_Union[Graph, _Mapping]]] = ..., little_endian: bool = ..., primitives: _Optional[_Iterable[_Union[Primitive, _Mapping]]] = ..., mind_ir_version: _Optional[int] = ..., user_info: _Optional[_Mapping[str, str]] = ...) -> None: ...
