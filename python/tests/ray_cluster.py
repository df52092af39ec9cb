"""Runs examples/ray_convert.py on a cluster of two nodes on this machine, and ends with its code.

    python ray_cluster.py ARCHIVES OUT RECORDS

It is killed once OUT has as many records of models.
"""

import pathlib
import subprocess
import sys
import time

from ray.cluster_utils import Cluster

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/ray_convert.py"


def main(archives: str, out: str, records: str) -> int:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    words = [sys.executable, EXAMPLE, archives, out, "--address", cluster.address]
    command = subprocess.Popen(list(map(str, words)))
    while command.poll() is None:
        time.sleep(0.02)
        if sum(1 for _ in pathlib.Path(out).rglob("*.onnx.json")) >= int(records):
            command.kill()
    cluster.shutdown()
    return abs(command.wait())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
