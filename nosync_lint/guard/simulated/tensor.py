"""A tensor that says it lies on `cuda:0`, with a tensor of the host inside that holds its values.

Torch takes the branches it takes for CUDA, because device and type are true in C++ as well, and every operation comes
to `dispatch.execute`, which runs it on the inner tensors. The autograd graph is one of inner tensors: an engine without
a device runs no other. So all that autograd asks of a tensor is asked of the inner one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nosync_lint.guard.operations.constructs import LABELS, WHOLE, labelled, stored, users_code
from nosync_lint.guard.operations.sightings import saw_read

DEVICE = torch.device("cuda", 0)
HELD = "_nosync_held"
"""Marks inner tensors that gradients are asked for: a graph that reaches one is one of the device."""
_BASE: Any = torch._C.TensorBase
_make: Any = torch.Tensor._make_wrapper_subclass
asks_for_grad: Callable[[Tensor], bool] = _BASE.requires_grad.__get__
_is_leaf: Callable[[Tensor], bool] = _BASE.is_leaf.__get__


class SimulatedTensor(Tensor):
    """See the module. Made by `wrap` alone."""

    _inner: Tensor
    _gradient: SimulatedTensor | None = None
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        from nosync_lint.guard.simulated.dispatch import execute  # where no mode is on: another thread, a closed guard

        return execute(func, args, kwargs or {})

    # -- what Python reads --

    def tolist(self) -> Any:
        saw_read(*WHOLE["tolist"])
        # nosync-lint: ignore[NSL202] the inner tensor is one of the host
        return self._inner.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise TypeError(
                "can't convert cuda:0 device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        saw_read(*WHOLE["numpy"])
        # nosync-lint: ignore[NSL203] the inner tensor is one of the host
        return self._inner.numpy(force=True)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.numpy()

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        saw_read(*WHOLE["__repr__"])
        # nosync-lint: ignore[NSL208] the inner tensor is one of the host
        return f"{repr(self._inner)[:-1]}, device='{DEVICE}')"

    def __format__(self, spec: str) -> str:
        if self.dim():
            return object.__format__(self, spec)
        saw_read(*WHOLE["__format__"])
        # nosync-lint: ignore[NSL201] the inner tensor is one of the host
        return format(self._inner.item(), spec)

    # -- memory --

    def data_ptr(self) -> int:
        return self._inner.data_ptr()

    def untyped_storage(self) -> Any:
        return self._inner.untyped_storage()

    def pin_memory(self, *_: Any) -> Tensor:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")

    def is_pinned(self, *_: Any) -> bool:
        return False

    def record_stream(self, stream: Any) -> None:
        """Nothing runs on another stream here."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        saw_read("d2h.serialise", "a tensor that is pickled")
        inner = self._inner
        if self._is_parameter():
            inner = torch.nn.Parameter(inner.detach(), inner.requires_grad)
        return inner.__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol")
            copied = wrap(self._inner.detach().clone())
            if self.requires_grad:
                copied.requires_grad_()
            if self._is_parameter():
                copied._is_param = True
            if self._inner.grad is not None:
                copied._inner.grad = self._inner.grad.clone()
            memo[id(self)] = copied
        return memo[id(self)]

    def _is_parameter(self) -> bool:
        return getattr(self, "_is_param", False)

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """With this, `Module.to` swaps what parameters are and keeps which objects they are."""
        return ["_inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *_: Any) -> SimulatedTensor:
        return wrap(inner["_inner"])

    # -- autograd: all of it is about the inner tensor --

    def _held(self) -> Tensor:
        adopt(self)
        return self._inner

    @property
    def requires_grad(self) -> bool:
        return self._held().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> SimulatedTensor:
        self._inner.requires_grad_(requires_grad)
        setattr(self._inner, HELD, True)
        return self

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        return self._held().is_leaf

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        return self._held().grad_fn

    @property
    def grad(self) -> SimulatedTensor | None:
        inner = self._held().grad
        if inner is None:
            self._gradient = None
        elif self._gradient is None or self._gradient._inner is not inner:
            self._gradient = wrap(inner)
        return self._gradient

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._held().grad = unwrapped(value)

    @grad.deleter
    def grad(self) -> None:
        self._held().grad = None

    @property
    def data(self) -> SimulatedTensor:
        return wrap(self._held().data)

    @data.setter
    def data(self, value: Tensor) -> None:
        if isinstance(value, SimulatedTensor):
            self._inner.data = value._inner
            refresh(self)
            return
        onto_host = torch.nn.Parameter(value, self.requires_grad) if self._is_parameter() else value.detach()
        onto_host.grad = self._inner.grad
        torch.utils.swap_tensors(self, onto_host)  # type: ignore[no-untyped-call]
        # `Module.cpu` does this: the object stays, and lies on the host

    @property
    def _version(self) -> int:  # type: ignore[override]
        return self._held()._version

    @property
    def retains_grad(self) -> bool:  # type: ignore[override]
        return self._held().retains_grad

    def retain_grad(self) -> None:
        self._held().retain_grad()

    def detach_(self) -> SimulatedTensor:
        self._held().detach_()
        return self

    def register_hook(self, hook: Callable[[Tensor], Any]) -> Any:
        def call(gradient: Tensor) -> Any:
            with users_code():
                return unwrapped(hook(wrap(gradient)))

        return self._held().register_hook(call)  # type: ignore[no-untyped-call]

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        def call(_: Tensor) -> None:
            with users_code():
                hook(self)

        return self._held().register_post_accumulate_grad_hook(call)  # type: ignore[no-untyped-call]


for _name, (_kind, _text) in LABELS.items():
    setattr(SimulatedTensor, _name, labelled(getattr(Tensor, _name), _kind, _text))
SimulatedTensor.__setitem__ = stored(Tensor.__setitem__)  # type: ignore[method-assign]


def wrap(inner: Tensor) -> SimulatedTensor:
    """A tensor on the simulated device that shares the memory of a tensor on the host. Raises `NotImplementedError`."""
    if inner.is_conj():
        inner = inner.resolve_conj()
    if inner.is_neg():
        inner = inner.resolve_neg()
    layout = inner.layout
    dense = layout is torch.strided
    if not dense and layout is not torch.sparse_coo:
        raise NotImplementedError(
            f"{layout} cannot run on the simulated device: a compressed layout has no strides to show"
        )
    strides, offset = (inner.stride(), inner.storage_offset()) if dense else (None, None)
    wrapper: SimulatedTensor = _make(
        SimulatedTensor, inner.shape, strides, offset, None, inner.dtype, layout, DEVICE
    )  # by position: names cost a third of it
    wrapper._inner = inner
    return wrapper


def unwrapped(value: Any) -> Any:
    """The inner tensor of one on the simulated device; anything else as it is."""
    if isinstance(value, SimulatedTensor):
        adopt(value)
        return value._inner
    return value


def adopt(tensor: SimulatedTensor) -> None:
    """Moves inside what C++ said of the outer tensor: `requires_grad=True` of a factory."""
    if asks_for_grad(tensor) and _is_leaf(tensor):
        _BASE.requires_grad.__set__(tensor, False)
        tensor.requires_grad_()


def refresh(tensor: SimulatedTensor) -> None:
    """Takes over sizes and strides after the inner tensor changed them."""
    inner = tensor._inner
    if tensor.shape != inner.shape or tensor.stride() != inner.stride() or tensor.dtype != inner.dtype:
        with torch._C._DisableTorchDispatch():
            _BASE.data.__set__(tensor, wrap(inner))
