"""modelyard: the core. Policy and contracts; imports neither Ray nor an engine."""

__version__ = "0.1.0"
