"""MLX on Linux: its `metal_kernel` runs porter's kernels, under the package `mlx` with its CPU backend."""
