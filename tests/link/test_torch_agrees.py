"""What the models say of an operation is what torch gives: kind, rank and dtype class, for all of them in one program."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import Tensor

from nosync_lint.link.values import Value
from tests.conftest import HEADER, Linked

SETUP = """
x = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
i = torch.tensor([[4, 1], [2, 3]])
b = torch.tensor([[True, False], [True, True]])
v = torch.tensor([1.0, 2.0, 3.0])
z = torch.tensor(2.0)
c = torch.zeros(2, 3, 8, 8)
"""
CALLS = [
    # masks are counted, not kept
    "b.sum()", "b.sum(1)", "b.sum(dim=1, keepdim=True)", "torch.sum(b, 0)", "b.cumsum(0)", "torch.cumsum(b, 1)", "b.prod()", "b.nansum()",
    "b.square()", "i.sum(0)", "x.sum(1, True)", "z.sum(0)", "z.any(dim=0)", "z.max(0)", "b.count_nonzero(1)", "torch.square(i)",
    # division gives floats unless it rounds
    "torch.div(i, i)", "i.div(2)", "i.true_divide(i)", "torch.div(i, i, rounding_mode='floor')", "i.floor_divide(2)", "i.divide(i)",
    # order statistics
    "x.median()", "x.median(1)", "x.median(dim=0)", "torch.nanmedian(x)", "torch.nanmedian(x, 1)", "x.kthvalue(1)", "x.mode()", "x.max()",
    "x.min(1)", "torch.aminmax(x)", "x.quantile(0.5)", "x.quantile(v / 4, dim=1)", "x.msort()", "x.argsort(1)", "x.topk(1)", "i.mode(0)",
    # as another tensor is
    "z.expand_as(x)", "v[:2].expand_as(x)", "v[:2].view_as(i[0])", "x.reshape_as(x.flatten())", "x.type_as(i)",
    # with and without a dimension
    "x.repeat_interleave(2)", "x.repeat_interleave(2, dim=0)", "torch.repeat_interleave(x, 2, 1)", "x.norm()", "x.norm(2, 1)",
    "torch.linalg.norm(x)", "torch.linalg.vector_norm(x, dim=1)", "x.logsumexp(1)", "i.logsumexp(0)", "x.std()", "x.var(1)", "x.mean(0)",
    "torch.var_mean(x)", "torch.std_mean(x, dim=1)", "x.flatten(0)", "x.unflatten(0, (2, 1))", "x.diff()", "i.trace()", "x.take(i - 1)",
    # elementwise
    "x.atan2(x)", "i.atan()", "torch.hypot(x, x)", "i.exp2()", "torch.special.i0e(i)", "torch.special.ndtr(x)", "i.float_power(2)", "i.gcd(i)",
    "torch.lcm(i, i)", "x.heaviside(z)", "x.copysign(-1.0)", "x.logaddexp(x)", "b.bitwise_not()", "i.negative()", "torch.absolute(i)", "x.frac()",
    "x.isposinf()", "i.greater_equal(2)", "x.sgn()", "x.sinc()", "i.deg2rad()", "i.lgamma()", "x.logit()", "torch.ldexp(x, i)", "x.xlogy(x)",
    # in place
    "x.exp_()", "i.eq_(2)", "x.clip_(0, 1)", "i.bitwise_or_(1)", "x.pow_(2)", "b.logical_not_()", "x.t_()", "x.fill_diagonal_(0.0)",
    # linear algebra
    "torch.linalg.cross(v, v)", "torch.linalg.solve_ex(x, x)", "torch.linalg.inv_ex(x)", "torch.linalg.svd(x)", "torch.linalg.qr(x)", "torch.linalg.eigh(x)",
    "torch.linalg.eig(x)", "torch.linalg.slogdet(x)", "torch.linalg.lu_factor(x)", "torch.linalg.lu_factor_ex(x)",
    "torch.linalg.matrix_rank(x)", "torch.linalg.cond(x)", "torch.linalg.multi_dot([x, x, x])", "torch.linalg.pinv(x)", "torch.inner(v, v)",
    "torch.tensordot(x, x, dims=1)", "torch.cdist(x, x)", "torch.linalg.vecdot(x, x)", "x.logdet()", "torch.trapezoid(i)", "torch.cov(i)",
    "torch.linalg.lu_solve(*torch.linalg.lu_factor(x), x)", "torch.addmv(v[:2], x, v[:2])", "x.dist(x)", "torch.frexp(x)",
    # spectra
    "torch.fft.fft(v)", "torch.fft.rfft(x)", "torch.fft.irfft2(torch.fft.rfft2(x))", "torch.fft.fftshift(i)", "torch.view_as_real(torch.fft.fft(v))",
    # layers
    "torch.nn.functional.leaky_relu(x)", "torch.nn.functional.softplus(x)", "torch.nn.functional.avg_pool2d(c, 2)",
    "torch.nn.functional.adaptive_avg_pool2d(c, 1)", "torch.nn.functional.group_norm(c, 3)", "torch.nn.functional.grid_sample(c, torch.zeros(2, 4, 4, 2))",
    "torch.nn.functional.pixel_shuffle(torch.zeros(1, 4, 2, 2), 2)", "torch.nn.functional.cosine_similarity(x, x)",
    "torch.nn.functional.conv_transpose2d(c, torch.zeros(3, 2, 2, 2))", "torch.nn.functional.soft_margin_loss(x, x)", "torch.nn.functional.glu(x)",
    # lists and plain values
    "x.hsplit(2)", "torch.vsplit(x, 2)", "x.unsafe_chunk(2)", "torch.equal(x, x)", "torch.allclose(x, x)", "x.is_signed()", "torch.dstack([x, x])",
    "torch.column_stack([v, v])", "torch.atleast_2d(v)", "torch.nonzero_static(x, size=2)", "x.histogram(2)", "x.moveaxis(0, 1)", "x.adjoint()",
]  # fmt: skip


@pytest.fixture(scope="module")
def believed() -> dict[str, Value]:
    """What the linter takes each call for."""
    body = "\n    ".join([*SETUP.split("\n"), *(f"reveal({call})" for call in CALLS)])
    return dict(zip(CALLS, Linked({"m.py": f"{HEADER}def f():\n    {body}\n"}).values, strict=True))


def disagreement(value: Value, found: object) -> str | None:
    """What a value says that is not so. What it leaves open is never wrong."""
    if not value.known:
        return None
    if isinstance(found, Tensor):
        dtype = (
            "bool"
            if found.dtype == torch.bool
            else "float"
            if found.is_floating_point() or found.is_complex()
            else "int"
        )
        said = [value.kind, value.rank, value.dtype, value.where]
        told = ["tensor", found.dim(), dtype, "host"]
        return next(
            (f"{one} is {other}" for one, other in zip(said, told, strict=True) if one not in (None, other)), None
        )
    if isinstance(found, (tuple, list)):
        if value.kind not in ("tuple", "list"):
            return f"{value.kind} is {type(found).__name__}"
        items = [value.items] * len(found) if isinstance(value.items, Value) else list(value.items or ())
        if items and len(items) != len(found):
            return f"{len(items)} items are {len(found)}"
        return next((wrong for pair in zip(items, found, strict=False) if (wrong := disagreement(*pair))), None)
    return None if value.kind == type(found).__name__ else f"{value.kind} is {type(found).__name__}"


@pytest.mark.parametrize("call", CALLS)
def test_the_models_say_what_torch_gives(believed: dict[str, Value], call: str) -> None:
    names: dict[str, object] = {"torch": torch}
    exec(SETUP, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eval(call, names)
    assert believed[call].known, "no row of the models tells of it"
    assert disagreement(believed[call], found) is None
