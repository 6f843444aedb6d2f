"""The real kubectl, asked the same of a real and of the embedded control plane."""
