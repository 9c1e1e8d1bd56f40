"""Speed and memory against PyG, in one run."""
