"""A Ray cluster of two nodes with one core each, until standard input ends; prints its address.

The line `kill` takes the second node away at once, as a power cut would.
"""

import contextlib
import os
import sys

# By default Ray takes a node for lost after half a minute without an answer.
os.environ |= {"RAY_health_check_period_ms": "1000", "RAY_health_check_failure_threshold": "3"}

from ray.cluster_utils import Cluster

with contextlib.redirect_stdout(sys.stderr):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        with contextlib.redirect_stdout(sys.stderr):
            cluster.remove_node(second, allow_graceful=False)
        print("killed", flush=True)
cluster.shutdown()
