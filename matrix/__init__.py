"""Every torch, NumPy, Python and ONNX Runtime that people have: `make matrix`."""
