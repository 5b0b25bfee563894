"""Methods as Objective-C headers declare them."""

from __future__ import annotations

import re

METHOD = re.compile(r"^[-+] ?\((?P<result>[^)]*)\)(?P<rest>[^;{]*);", re.M)
PART = re.compile(r"(\w+):\(((?:[^()]|\([^()]*\))*)\)")
