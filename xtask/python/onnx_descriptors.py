"""Print what the installed `onnx` package's protobuf descriptors say, a fact a line, sorted.

Read by `cargo xtask regen-proto`; a test of pt2onnx-proto says the same of proto/onnx.proto.
"""

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from onnx import onnx_ml_pb2


def enum(scope, e, last):
    yield f"enum {scope}.{e.name}"
    for v in e.value:
        yield f"value {scope}.{e.name}.{v.name} {v.number}"
    yield from reserved(f"{scope}.{e.name}", e, last)


def reserved(name, holder, last):
    for r in holder.reserved_range:
        yield f"reserved {name} {r.start} to {r.end - last}"
    for r in holder.reserved_name:
        yield f"reserved {name} {r}"


def field(scope, message, f):
    label = FieldDescriptorProto.Label.Name(f.label)
    ty = f.type_name or FieldDescriptorProto.Type.Name(f.type)
    oneof = f" in {message.oneof_decl[f.oneof_index].name}" if f.HasField("oneof_index") else ""
    packed = " packed" if f.options.packed else ""
    return f"field {scope}.{f.name} {f.number} {label} {ty}{packed}{oneof}"


def message(scope, m):
    name = f"{scope}.{m.name}"
    yield f"message {name}"
    yield from reserved(name, m, 1)
    for f in m.field:
        yield field(name, m, f)
    for e in m.enum_type:
        yield from enum(name, e, 0)
    for n in m.nested_type:
        yield from message(name, n)


def main():
    file = FileDescriptorProto()
    onnx_ml_pb2.DESCRIPTOR.CopyToProto(file)
    scope = f".{file.package}"
    lines = [line for e in file.enum_type for line in enum(scope, e, 0)]
    lines += [line for m in file.message_type for line in message(scope, m)]
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    main()
