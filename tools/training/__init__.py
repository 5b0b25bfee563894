"""What tools/zoo.py trains on the device and on the CPU, and how it compares the two."""
