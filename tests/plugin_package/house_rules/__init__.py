"""The rules of one house."""

from house_rules.snapshot_per_step import SnapshotPerStep

RULES = [SnapshotPerStep]
