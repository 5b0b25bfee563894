"""An elementwise operator that is new to PyTorch, from a schema and an expression: values, and its files' texts."""
