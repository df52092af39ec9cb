"""Print the version of the installed PyTorch, then its operator schemas, a line each.

Read by `cargo xtask regen-aten`. torchvision's operators are there because the archives of its
detection models use them; importing both modules below registers schemas.
"""

import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401
import torchvision

NAMESPACES = {"aten", "prims", "quantized_decomposed", "torchvision"}


def main():
    print(torch.__version__.split("+")[0], torchvision.__version__.split("+")[0])
    for schema in torch._C._jit_get_all_schemas():
        if schema.name.split("::")[0] in NAMESPACES:
            print(schema)


if __name__ == "__main__":
    main()
