"""Operations whose outcome is known, run once before anything is guarded: does pretending work with this torch?"""

from __future__ import annotations

import torch

from nosync_lint.guard.events import CannotSimulate


def sing() -> None:
    """Runs them on the device, with the mode of this thread on. Raises `CannotSimulate`, which says what went wrong."""
    try:
        found = _outcome()
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CannotSimulate(f"torch {torch.__version__} does not take the simulated device: {error}") from error
    if found != EXPECTED:
        raise CannotSimulate(f"torch {torch.__version__} computes other values on the simulated device: {found}")


EXPECTED = ([5.0, 7.0, 2.0], True, ("cuda", "cpu"))


def _outcome() -> tuple[list[float], bool, tuple[str, str]]:
    with torch.inference_mode(False), torch.enable_grad():
        # nosync-lint: off[NSL101, NSL103, NSL105, NSL202, NSL203] the simulated device is tried here: nothing waits
        # No backward: a process that has run one cannot fork others that do.
        leaf = torch.ones(3, device="cuda", dtype=torch.float32).requires_grad_()
        table = leaf * 2
        table[0] = 5.0
        table[torch.tensor([1], device="cuda")] = 7.0
        uploaded = torch.zeros(2).to("cuda", non_blocking=True).add_(1)
        return table.tolist(), table.grad_fn is not None, (uploaded.device.type, uploaded.cpu().device.type)
        # nosync-lint: on[NSL101, NSL103, NSL105, NSL202, NSL203]
