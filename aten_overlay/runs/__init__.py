"""What a program compiled and launched on the device, written down as it happens, for whoever started the program."""
