"""Print every operator schema of the domain "" that the installed `onnx` package knows, as JSON.

All versions are listed, deprecated ones too, sorted by name and version. Attributes are sorted by
name, because the package keeps them in a hash map. Read by `cargo xtask regen-onnx`.
"""

import json
import sys

import onnx
from onnx.defs import OpSchema


def default(attribute):
    """The default value as a plain Python value, or None if the attribute has none."""
    if not attribute.default_value.type:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (int, float)):
        return value
    return [v.decode() if isinstance(v, bytes) else v for v in value]


def parameter(p):
    return {
        "name": p.name,
        "ty": p.type_str,
        "kind": p.option.name,
        "homogeneous": p.is_homogeneous,
    }


def schema(s):
    return {
        "name": s.name,
        "since": s.since_version,
        "deprecated": s.deprecated,
        "experimental": s.support_level == OpSchema.SupportType.EXPERIMENTAL,
        "inputs": [parameter(p) for p in s.inputs],
        "outputs": [parameter(p) for p in s.outputs],
        "min_inputs": s.min_input,
        "min_outputs": s.min_output,
        "attributes": [
            {
                "name": a.name,
                "kind": a.type.name,
                "required": a.required,
                "default": default(a),
            }
            for _, a in sorted(s.attributes.items())
        ],
        "constraints": [
            {"name": c.type_param_str, "types": sorted(c.allowed_type_strs)}
            for c in s.type_constraints
        ],
        "has_function": s.has_function or s.has_context_dependent_function,
    }


def main():
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""]
    schemas.sort(key=lambda s: (s.name, s.since_version))
    json.dump(
        {"version": onnx.__version__, "schemas": [schema(s) for s in schemas]}, sys.stdout
    )


if __name__ == "__main__":
    main()
