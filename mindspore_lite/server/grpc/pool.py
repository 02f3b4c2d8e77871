"""The descriptors of our gRPC messages, apart from those of the process.

Clients such as tritonclient register messages of the same names in protobuf's default pool, where
another text of the same file or message is an error: our own must not be there.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message_factory import GetMessageClass

POOL = DescriptorPool()


def build(file: FileDescriptor, names: dict[str, Any]) -> None:
    """Put the classes of a file's messages and enums into a module, as generated code does."""
    for name, message in file.message_types_by_name.items():
        names[name] = GetMessageClass(message)
    for name, enum in file.enum_types_by_name.items():
        names[name], names[f"_{name.upper()}"] = EnumTypeWrapper(enum), enum
    for name, service in file.services_by_name.items():
        names[f"_{name.upper()}"] = service
