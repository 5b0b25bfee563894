"""Results of a graph that no operand gives."""

from __future__ import annotations

import torch

from porter.loops.fusion import fuse
from porter.loops.printing import nest_lines
from porter.recording.concrete import read_concrete_graph
from tests.porter.recording.graphs import GraphBuilder
