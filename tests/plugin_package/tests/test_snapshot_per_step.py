from house_rules.snapshot_per_step import SnapshotPerStep

from nosync_lint.testing import check_rule

DEBUG = "def snapshot(tensor, name='t'): ..."


def test_tensors_of_the_device_are_reported_and_others_are_not() -> None:
    check_rule(
        SnapshotPerStep,
        flagged={
            "debug.py": DEBUG,
            "train.py": """
                import torch
                from debug import snapshot as shot

                def step(t: torch.Tensor):  # nosync-lint: hot
                    shot(t)  # error: [snapshot-per-step] likely hot
                    shot(name="u", tensor=t)  # error: [snapshot-per-step]
                """,
        },
        clean={
            "debug.py": DEBUG,
            "train.py": """
                import torch
                from debug import snapshot
                from other import snapshot as unknown

                def step(t: torch.Tensor):  # nosync-lint: hot
                    snapshot(torch.zeros(3))
                    unknown(t)
                """,
        },
    )


def test_a_call_on_the_way_from_a_hot_root_is_found() -> None:
    check_rule(
        SnapshotPerStep,
        flagged={
            "debug.py": DEBUG,
            "keep.py": """
                import debug

                def keep(t):
                    debug.snapshot(t)  # error: [snapshot-per-step] hot
                """,
            "train.py": """
                import torch
                from keep import keep

                def step(t: torch.Tensor):  # nosync-lint: hot
                    keep(t)  # related: [snapshot-per-step]
                """,
        },
        clean="",
    )
