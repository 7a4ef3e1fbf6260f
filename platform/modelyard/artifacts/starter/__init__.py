"""The starter models: real weights, made on this machine from packages that ship them."""
