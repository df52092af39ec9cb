"""Saves the models of `cargo xtask bench` with torch.export.save: bench_models.py FOLDER.

BERT-base and a 32-layer Llama of hidden size 256, of transformers, with random weights.
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


def llama():
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=256,
            intermediate_size=768,
            num_hidden_layers=32,
            num_attention_heads=8,
            num_key_value_heads=4,
            vocab_size=32000,
        )
    )


folder = pathlib.Path(sys.argv[1])
torch.manual_seed(0)
for name, make in [("bert-base", bert), ("llama-32", llama)]:
    archive = folder / f"{name}.pt2"
    if not archive.exists():
        model = Logits(make()).eval()
        dynamic = {"input_ids": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
        ids = torch.randint(0, 1000, (2, 16))
        program = torch.export.export(model, (ids,), dynamic_shapes=dynamic)
        torch.export.save(program, archive)
