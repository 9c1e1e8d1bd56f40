"""Speed and memory of the layers against PyG's, measured in one run."""
