"""Training on several processes or machines: ranks, partitions of a graph, plans."""
