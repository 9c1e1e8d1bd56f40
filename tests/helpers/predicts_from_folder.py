"""Loads a model in a process of its own and writes the bytes of its predictions.

python predicts_from_folder.py MODEL ARRAYS.npz OUT
"""

import sys
from pathlib import Path

import numpy as np

import adgn

model, arrays, out = sys.argv[1:]
with np.load(arrays) as content:
    graph = adgn.Graph.from_arrays(content["x"], content["edges"])
Path(out).write_bytes(adgn.load(model).predict_proba(graph).tobytes())
