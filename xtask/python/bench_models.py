"""The models of `cargo xtask bench`, with random weights. bench_models.py FOLDER saves two of them with torch.export.save: BERT-base
and a 32-layer Llama of hidden size 256, of transformers.
"""

import pathlib
import sys

import torch
import transformers


class Logits(torch.nn.Module):
    """Token ids to the first of the model's outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids, use_cache=False).to_tuple()[0]


def bert():
    return transformers.BertModel(transformers.BertConfig())


def llama(layers=32):
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=256,
            intermediate_size=768,
            num_hidden_layers=layers,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=32000,
        )
    )


def resnet():
    import torchvision

    return torchvision.models.resnet18()


def text(model):
    """A model of token ids, its arguments, and its dynamic shapes."""
    dynamic = {"input_ids": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
    return Logits(model).eval(), (torch.randint(0, 1000, (2, 16)),), dynamic


#: Each makes a model, its arguments, and its dynamic shapes.
MODELS = {
    "ResNet-18": lambda: (resnet().eval(), (torch.randn(1, 3, 224, 224),), None),
    "BERT-base": lambda: text(bert()),
    "Llama, 4 layers": lambda: text(llama(4)),
    "Llama, 32 layers": lambda: text(llama(32)),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    for file, name in [("bert-base", "BERT-base"), ("llama-32", "Llama, 32 layers")]:
        archive = folder / f"{file}.pt2"
        if not archive.exists():
            model, args, dynamic = MODELS[name]()
            torch.export.save(torch.export.export(model, args, dynamic_shapes=dynamic), archive)


if __name__ == "__main__":
    main()
