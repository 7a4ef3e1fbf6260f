"""Fakes for tests of what is built on modelyard: no Ray, no engine, no port, no sleeping."""
