"""From what others publish (a folder, a hub, a GGUF file, a LoRA) to an artifact of ours."""
