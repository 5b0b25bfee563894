"""Kernels of loop form as a fork has them: templates over element types, their host code, and the files they go to."""
