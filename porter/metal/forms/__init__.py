"""Forms: what an overload computes at any sizes, found from the results of its calls, and not from its graph.

A form is a file here with its value, kernels and launch, and a function in `porter/recording/forms/` that finds it.
"""

from __future__ import annotations

from typing import get_args

from porter.metal.forms.bincount import Bincount
from porter.metal.forms.concatenation import Concatenation
from porter.metal.forms.form import Form
from porter.metal.forms.index_map import IndexMap
from porter.metal.forms.nonzero import Nonzero
from porter.metal.forms.pooling import Pooling
from porter.metal.forms.resampling import Resampling
from porter.metal.forms.sort import Sort
from porter.metal.forms.unique import Unique

# The union is what stored programs are decoded by.
AnyForm = IndexMap | Bincount | Concatenation | Resampling | Pooling | Sort | Nonzero | Unique
FORMS: tuple[type[Form], ...] = get_args(AnyForm)
