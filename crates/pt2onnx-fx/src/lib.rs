//! PyTorch exported programs: .pt2 archives, FX graphs, dynamic-shape constraints.
