"""PTX loaded on a device, and the functions found in it, each once."""

from __future__ import annotations

import ctypes
from threading import Lock

from aten_overlay.cuda.driver import Driver

# Threadgroup memory that a function has without asking: CUDA's limit for static arrays.
PLAIN_BYTES = 48 * 1024


class Modules:
    """PTX on the devices that asked for it."""

    def __init__(self, text: str, driver: Driver) -> None:
        self._text, self._driver, self._lock = text, driver, Lock()
        self._modules: dict[int, ctypes.c_void_p] = {}
        self._functions: dict[tuple[int, str], ctypes.c_void_p] = {}
        self._dynamic: dict[int | None, int] = {}

    def find_function(self, symbol: str, device: int) -> ctypes.c_void_p:
        """A function on a device, whose context is then current. Raises PTR385-PTR387, PTR389 and PTR390."""
        with self._lock:
            driver = self._driver
            if device not in self._modules:
                driver.require_device(device)
                driver.enter(device)
                self._modules[device] = driver.load_module(self._text.encode())
            if (device, symbol) not in self._functions:
                driver.enter(device)
                self._functions[device, symbol] = driver.find_function(self._modules[device], symbol)
            return self._functions[device, symbol]

    def find_variable(self, name: str, device: int) -> int:
        """The address of a variable on a device where a function was found, whose context is then current."""
        with self._lock:
            self._driver.enter(device)
            return self._driver.find_variable(self._modules[device], name)

    def allow_dynamic(self, function: ctypes.c_void_p, size: int) -> None:
        """Lets a function have that many bytes of dynamic threadgroup memory; more than it was given before."""
        with self._lock:
            if self._dynamic.get(function.value, 0) < size:
                self._driver.allow_dynamic(function, size)
                self._dynamic[function.value] = size
