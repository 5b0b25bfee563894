"""One function for what ports write more than once."""
