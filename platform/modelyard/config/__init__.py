"""Configuration: parsed once into frozen models; nobody else reads a file or the environment."""
