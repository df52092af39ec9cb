"""Captures of modules: by torch.export, by a trace, by TorchScript."""
