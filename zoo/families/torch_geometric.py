"""torch_geometric."""
