"""`python -m deployments.vllm_architectures`: what the installed vLLM runs, one class name a line.

A process of its own: the core asks it without importing an engine.
"""

from vllm.model_executor.models.registry import ModelRegistry


def main() -> None:
    print("\n".join(sorted(ModelRegistry.get_supported_archs())))


if __name__ == "__main__":
    main()
