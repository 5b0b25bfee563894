"""Metal kernels on an NVIDIA GPU: PTX loaded with the CUDA driver, launched in torch's stream on its CUDA tensors."""
