"""The second reading of old implementations: run them, and tell what their graphs depend on."""
