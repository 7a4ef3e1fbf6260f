"""The rules of `modelyard check`: each takes a Checked and yields faults."""
