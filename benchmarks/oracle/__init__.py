"""Verdicts on samples against torch's CUDA build, which runs on recording stub libraries without a GPU."""
