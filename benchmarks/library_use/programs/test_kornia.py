"""Operators, augmentations, losses, geometry and features of kornia over random pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kornia
import pytest
import torch
from torch import Tensor

DEVICE = "cuda"
BATCH, SIZE = 2, 24


def pictures(channels: int = 3) -> Tensor:
    torch.manual_seed(2)
    return torch.rand(BATCH, channels, SIZE, SIZE, device=DEVICE, requires_grad=True)


def points(count: int = 8) -> Tensor:
    torch.manual_seed(3)
    return torch.rand(BATCH, count, 2, device=DEVICE) * SIZE


COLORS = ("hsv", "hls", "lab", "luv", "ycbcr", "yuv", "xyz", "grayscale", "bgr", "rgba", "linear_rgb")
COLOR_CALLS: dict[str, Callable[[Tensor], Any]] = {
    **{
        f"rgb_to_{name}": lambda x, name=name: getattr(kornia.color, f"rgb_to_{name}")(
            x, *([1.0] if name == "rgba" else [])
        )
        for name in COLORS
    },
    "sepia": lambda x: kornia.color.sepia(x),
    "apply_colormap": lambda x: kornia.color.apply_colormap(
        (x[:, :1] * 255).long(), kornia.color.ColorMap("autumn", device=x.device, dtype=x.dtype)
    ),
    "raw_to_rgb": lambda x: kornia.color.raw_to_rgb(x[:, :1], kornia.color.CFA.BG),
}
FILTERS: dict[str, Callable[[Tensor], Any]] = {
    "gaussian_blur2d": lambda x: kornia.filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)),
    "gaussian_blur2d, sigma of tensors": lambda x: kornia.filters.gaussian_blur2d(
        x, 3, x.new_tensor([[1.5, 1.5]] * BATCH)
    ),
    "bilateral_blur": lambda x: kornia.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)),
    "box_blur": lambda x: kornia.filters.box_blur(x, 3),
    "canny": lambda x: kornia.filters.canny(x),
    "guided_blur": lambda x: kornia.filters.guided_blur(x, x, 3, 0.1),
    "laplacian": lambda x: kornia.filters.laplacian(x, 3),
    "median_blur": lambda x: kornia.filters.median_blur(x, 3),
    "motion_blur": lambda x: kornia.filters.motion_blur(x, 5, 90.0, 1.0),
    "sobel": lambda x: kornia.filters.sobel(x),
    "spatial_gradient": lambda x: kornia.filters.spatial_gradient(x),
    "unsharp_mask": lambda x: kornia.filters.unsharp_mask(x, (3, 3), (1.5, 1.5)),
    "blur_pool2d": lambda x: kornia.filters.blur_pool2d(x, 3),
    "filter2d": lambda x: kornia.filters.filter2d(x, x.new_ones(1, 3, 3)),
    "otsu_threshold": lambda x: kornia.filters.otsu_threshold(x.detach()),
    "dissolving": lambda x: kornia.filters.in_range(x.detach(), (0.2, 0.2, 0.2), (0.8, 0.8, 0.8)),
}
ENHANCEMENTS: dict[str, Callable[[Tensor], Any]] = {
    "brightness": lambda x: kornia.enhance.adjust_brightness(x, 0.2),
    "brightness by tensor": lambda x: kornia.enhance.adjust_brightness(x, x.new_tensor([0.1, 0.2])),
    "contrast": lambda x: kornia.enhance.adjust_contrast(x, 0.5),
    "gamma": lambda x: kornia.enhance.adjust_gamma(x, 2.2),
    "hue": lambda x: kornia.enhance.adjust_hue(x, 0.3),
    "saturation": lambda x: kornia.enhance.adjust_saturation(x, 2.0),
    "sigmoid": lambda x: kornia.enhance.adjust_sigmoid(x),
    "add_weighted": lambda x: kornia.enhance.add_weighted(x, 0.5, x, 0.5, 1.0),
    "equalize": lambda x: kornia.enhance.equalize(x),
    "equalize_clahe": lambda x: kornia.enhance.equalize_clahe(x, grid_size=(4, 4)),
    "posterize": lambda x: kornia.enhance.posterize(x, 3),
    "sharpness": lambda x: kornia.enhance.sharpness(x, 0.5),
    "solarize": lambda x: kornia.enhance.solarize(x, 0.5, 0.1),
    "normalize": lambda x: kornia.enhance.normalize(x, torch.tensor([0.5] * 3), torch.tensor([0.2] * 3)),
    "normalize_min_max": lambda x: kornia.enhance.normalize_min_max(x),
    "zca": lambda x: kornia.enhance.zca_whiten(x.reshape(BATCH * SIZE, -1)[:, :8]),
    "histogram": lambda x: kornia.enhance.histogram(
        x[:, 0].reshape(BATCH, -1), torch.linspace(0, 1, 8, device=DEVICE), torch.tensor(0.1)
    ),
    "jpeg": lambda x: kornia.enhance.jpeg_codec_differentiable(x[..., :16, :16], x.new_tensor([50.0, 60.0])),
    "invert": lambda x: kornia.enhance.invert(x, torch.tensor([1.0])),
}
LOSSES: dict[str, Callable[[Tensor], Any]] = {
    "ssim": lambda x: kornia.losses.ssim_loss(x, x.flip(0), 5),
    "ms_ssim": lambda x: kornia.losses.MS_SSIMLoss().to(DEVICE)(x, x.flip(0)),
    "psnr": lambda x: kornia.losses.psnr_loss(x, x.flip(0), 1.0),
    "total_variation": lambda x: kornia.losses.total_variation(x).sum(),
    "focal": lambda x: kornia.losses.focal_loss(x, x.argmax(1), 0.5, reduction="mean"),
    "focal with weights": lambda x: kornia.losses.focal_loss(
        x, x.argmax(1), 0.5, reduction="mean", weight=x.new_ones(3), ignore_index=1
    ),
    "binary focal": lambda x: kornia.losses.binary_focal_loss_with_logits(x, (x > 0.5).to(x.dtype), reduction="mean"),
    "dice": lambda x: kornia.losses.dice_loss(x, x.argmax(1)),
    "tversky": lambda x: kornia.losses.tversky_loss(x, x.argmax(1), 0.5, 0.5, ignore_index=1),
    "lovasz_softmax": lambda x: kornia.losses.lovasz_softmax_loss(x, x.argmax(1)),
    "lovasz_hinge": lambda x: kornia.losses.lovasz_hinge_loss(x[:, :1], (x[:, 0] > 0.5).long()),
    "hausdorff": lambda x: kornia.losses.HausdorffERLoss()(x, x.argmax(1, keepdim=True)),
    "charbonnier": lambda x: kornia.losses.charbonnier_loss(x, x.flip(0), reduction="mean"),
    "js_div": lambda x: kornia.losses.js_div_loss_2d(x.softmax(-1), x.flip(0).softmax(-1)),
    "smoothness": lambda x: kornia.losses.inverse_depth_smoothness_loss(x[:, :1], x),
}
HOMOGRAPHY = [[1.0, 0.1, 2.0], [0.05, 1.0, 1.0], [0.001, 0.0, 1.0]]
GEOMETRY: dict[str, Callable[[Tensor], Any]] = {
    "warp_perspective": lambda x: kornia.geometry.warp_perspective(x, x.new_tensor([HOMOGRAPHY] * BATCH), (SIZE, SIZE)),
    "warp_affine": lambda x: kornia.geometry.warp_affine(x, x.new_tensor([HOMOGRAPHY[:2]] * BATCH), (SIZE, SIZE)),
    "rotate": lambda x: kornia.geometry.rotate(x, x.new_tensor([30.0, 60.0])),
    "translate": lambda x: kornia.geometry.translate(x, x.new_tensor([[1.0, 2.0]] * BATCH)),
    "scale": lambda x: kornia.geometry.scale(x, x.new_tensor([[0.5, 0.5]] * BATCH)),
    "shear": lambda x: kornia.geometry.shear(x, x.new_tensor([[0.5, 0.0]] * BATCH)),
    "resize": lambda x: kornia.geometry.resize(x, (12, 12), antialias=True),
    "elastic": lambda x: kornia.geometry.elastic_transform2d(x, torch.rand(BATCH, 2, SIZE, SIZE, device=DEVICE)),
    "pyramid": lambda x: kornia.geometry.build_pyramid(x, 3),
    "crop": lambda x: kornia.geometry.crop_and_resize(x, boxes(), (8, 8)),
    "crop_by_boxes": lambda x: kornia.geometry.crop_by_boxes(x, boxes(), boxes()),
    "center_crop": lambda x: kornia.geometry.center_crop(x, (8, 8)),
    "remap": lambda x: kornia.geometry.remap(x, x[:, 0] * SIZE, x[:, 1] * SIZE, align_corners=True),
    "homography": lambda x: kornia.geometry.find_homography_dlt(points(), points() + 1),
    "homography, iterated": lambda x: kornia.geometry.find_homography_dlt_iterated(points(), points() + 1, torch.ones(BATCH, 8, device=DEVICE)),
    "fundamental": lambda x: kornia.geometry.find_fundamental(points(), points() + 1),
    "essential": lambda x: kornia.geometry.find_essential(points(), points() + 1),
    "ransac": lambda x: kornia.geometry.RANSAC("homography", max_iter=1)(points(16)[0], points(16)[0] + 0.5),
    "ransac, fundamental": lambda x: kornia.geometry.RANSAC("fundamental", max_iter=1)(points(16)[0], points(16)[0] + 0.5),
    "triangulate": lambda x: kornia.geometry.triangulate_points(projections(), projections(), points(), points() + 1),
    "solve_pnp": lambda x: kornia.geometry.solve_pnp_dlt(
        torch.rand(BATCH, 8, 3, device=DEVICE), points(), torch.eye(3, device=DEVICE).expand(BATCH, 3, 3)
    ),
    "depth_to_3d": lambda x: kornia.geometry.depth_to_3d(x[:, :1], torch.eye(3, device=DEVICE).expand(BATCH, 3, 3)),
    "undistort": lambda x: kornia.geometry.undistort_image(x, torch.eye(3, device=DEVICE).expand(BATCH, 3, 3), x.new_zeros(BATCH, 5)),
    "soft_argmax": lambda x: kornia.geometry.spatial_soft_argmax2d(x),
    "conv_soft_argmax": lambda x: kornia.geometry.conv_soft_argmax2d(x, (3, 3), (1, 1), (1, 1)),
    "nms": lambda x: kornia.geometry.nms2d(x, (3, 3)),
    "quaternion": lambda x: kornia.geometry.Quaternion.random(2, device=DEVICE).matrix(),
    "so3": lambda x: kornia.geometry.So3.exp(torch.rand(BATCH, 3, device=DEVICE)).log(),
    "se3": lambda x: kornia.geometry.Se3.exp(torch.rand(BATCH, 6, device=DEVICE)).inverse().matrix(),
    "angle_axis": lambda x: kornia.geometry.axis_angle_to_rotation_matrix(torch.rand(BATCH, 3, device=DEVICE)),
    "rotation_to_axis_angle": lambda x: kornia.geometry.rotation_matrix_to_axis_angle(torch.eye(3, device=DEVICE)[None]),
    "boxes": lambda x: kornia.geometry.boxes.Boxes.from_tensor(torch.tensor([[[1.0, 1, 5, 5]]], device=DEVICE)).to_mask(SIZE, SIZE),
    "pinhole": lambda x: kornia.geometry.PinholeCamera.from_parameters(
        *(torch.ones(1, device=DEVICE) for _ in range(4)), SIZE, SIZE, *(torch.ones(1, device=DEVICE) for _ in range(3)), 1,
        torch.device(DEVICE), torch.float32,
    ).intrinsics_inverse(),
    "ransac lines": lambda x: kornia.geometry.epipolar.compute_correspond_epilines(points(), torch.rand(BATCH, 3, 3, device=DEVICE)),
    "decompose": lambda x: kornia.geometry.epipolar.decompose_essential_matrix(torch.rand(BATCH, 3, 3, device=DEVICE)),
    "motion": lambda x: kornia.geometry.epipolar.motion_from_essential_choose_solution(
        torch.rand(BATCH, 3, 3, device=DEVICE), *(torch.eye(3, device=DEVICE).expand(BATCH, 3, 3),) * 2, points(), points() + 1
    ),
    "fit_line": lambda x: kornia.geometry.fit_line(points()),
    "thin plates": lambda x: kornia.geometry.get_tps_transform(points() / SIZE, points().flip(1) / SIZE),
    "perspective": lambda x: kornia.geometry.get_perspective_transform(boxes(), boxes() + 1),
}  # fmt: skip


def boxes() -> Tensor:
    return torch.tensor([[[2.0, 2.0], [9.0, 2.0], [9.0, 9.0], [2.0, 9.0]]] * BATCH, device=DEVICE)


def projections() -> Tensor:
    return torch.eye(3, 4, device=DEVICE).expand(BATCH, 3, 4)


def _features(x: Tensor) -> Any:
    return x.detach()[:, :1]


FEATURES: dict[str, Callable[[Tensor], Any]] = {
    "harris": lambda x: kornia.feature.harris_response(_features(x)),
    "gftt": lambda x: kornia.feature.gftt_response(_features(x)),
    "hessian": lambda x: kornia.feature.hessian_response(_features(x)),
    "dog": lambda x: kornia.feature.dog_response_single(_features(x)),
    "SIFT": lambda x: kornia.feature.SIFTDescriptor(16).to(DEVICE)(_features(x)[..., :16, :16]),
    "detector": lambda x: kornia.feature.ScaleSpaceDetector(5, resp_module=kornia.feature.BlobHessian()).to(DEVICE)(
        _features(x)
    ),
    "multi resolution": lambda x: kornia.feature.MultiResolutionDetector(
        kornia.feature.CornerHarris(0.04), num_features=5
    ).to(DEVICE)(_features(x)[:1]),
    "match_nn": lambda x: kornia.feature.match_nn(x.detach()[0, 0], x.detach()[1, 0]),
    "match_mnn": lambda x: kornia.feature.match_mnn(x.detach()[0, 0], x.detach()[1, 0]),
    "match_snn": lambda x: kornia.feature.match_snn(x.detach()[0, 0], x.detach()[1, 0], 0.9),
    "match_smnn": lambda x: kornia.feature.match_smnn(x.detach()[0, 0], x.detach()[1, 0], 0.95),
    "match_adalam": lambda x: kornia.feature.match_adalam(x.detach()[0, 0], x.detach()[1, 0], lafs(), lafs()),
    "extract_patches": lambda x: kornia.feature.extract_patches_from_pyramid(_features(x)[:1], lafs(), 8),
    "lafs": lambda x: kornia.feature.laf_to_boundary_points(lafs()),
    "HardNet": lambda x: kornia.feature.HardNet(False).to(DEVICE)(torch.rand(4, 1, 32, 32, device=DEVICE)),
    "LAFAffine": lambda x: kornia.feature.LAFAffineShapeEstimator(16).to(DEVICE)(lafs(), _features(x)[:1]),
    "orientation": lambda x: kornia.feature.LAFOrienter(16).to(DEVICE)(lafs(), _features(x)[:1]),
}


def lafs() -> Tensor:
    return kornia.feature.laf_from_center_scale_ori(points(SIZE)[:1], torch.full((1, SIZE, 1, 1), 4.0, device=DEVICE))


MORPHOLOGY: dict[str, Callable[[Tensor], Any]] = {
    name: lambda x, name=name: getattr(kornia.morphology, name)(x, x.new_ones(3, 3))
    for name in ("dilation", "erosion", "opening", "closing", "gradient", "top_hat", "bottom_hat")
}
METRICS: dict[str, Callable[[Tensor], Any]] = {
    "accuracy": lambda x: kornia.metrics.accuracy(x[:, :, 0, 0], x[:, :, 0, 0].argmax(1)),
    "confusion_matrix": lambda x: kornia.metrics.confusion_matrix(x.argmax(1), x.argmax(1), 3),
    "mean_iou": lambda x: kornia.metrics.mean_iou(x.argmax(1), x.argmax(1), 3),
    "mean_iou_bbox": lambda x: kornia.metrics.mean_iou_bbox(
        boxes().flatten(1)[:, [0, 1, 4, 5]], boxes().flatten(1)[:, [0, 1, 4, 5]]
    ),
    "mean_average_precision": lambda x: kornia.metrics.mean_average_precision(
        *(
            [torch.tensor([[1.0, 1, 5, 5]], device=DEVICE)],
            [torch.tensor([1], device=DEVICE)],
            [torch.tensor([0.7], device=DEVICE)],
        ),
        *([torch.tensor([[1.0, 1, 5, 5]], device=DEVICE)], [torch.tensor([1], device=DEVICE)]),
        n_classes=2,
    ),
    "psnr": lambda x: kornia.metrics.psnr(x, x.flip(0), 1.0),
    "aepe": lambda x: kornia.metrics.aepe(points(), points() + 1),
}
CALLS = {
    f"{group}, {name}": call
    for group, calls in {
        "color": COLOR_CALLS, "filter": FILTERS, "enhance": ENHANCEMENTS, "loss": LOSSES, "geometry": GEOMETRY,
        "feature": FEATURES, "morphology": MORPHOLOGY, "metric": METRICS,
    }.items()
    for name, call in calls.items()
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_operator(name: str) -> None:
    out = CALLS[name](pictures())
    if isinstance(out, Tensor) and out.requires_grad:
        out.sum().backward()


AUGMENTATIONS: dict[str, dict[str, Any]] = {
    "ColorJitter": {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.1},
    "ColorJiggle": {"brightness": 0.2, "contrast": 0.2, "saturation": 0.2, "hue": 0.1},
    "RandomAffine": {"degrees": 15.0, "translate": (0.1, 0.1), "scale": (0.8, 1.2), "shear": 10.0},
    "RandomBoxBlur": {},
    "RandomBrightness": {},
    "RandomChannelShuffle": {},
    "RandomContrast": {},
    "RandomCrop": {"size": (12, 12), "padding": 2},
    "RandomElasticTransform": {},
    "RandomEqualize": {},
    "RandomErasing": {},
    "RandomFisheye": {
        "center_x": torch.tensor([-0.3, 0.3]),
        "center_y": torch.tensor([-0.3, 0.3]),
        "gamma": torch.tensor([0.9, 1.0]),
    },
    "RandomGamma": {},
    "RandomGaussianBlur": {"kernel_size": 3, "sigma": (0.1, 2.0)},
    "RandomGaussianNoise": {},
    "RandomGrayscale": {},
    "RandomHorizontalFlip": {},
    "RandomHue": {},
    "RandomInvert": {},
    "RandomJPEG": {},
    "RandomMedianBlur": {},
    "RandomMotionBlur": {"kernel_size": 3, "angle": 35.0, "direction": 0.5},
    "RandomPerspective": {},
    "RandomPlanckianJitter": {},
    "RandomPlasmaShadow": {},
    "RandomPosterize": {},
    "RandomRain": {},
    "RandomResizedCrop": {"size": (12, 12)},
    "RandomRotation": {"degrees": 30.0},
    "RandomSaltAndPepperNoise": {},
    "RandomSharpness": {},
    "RandomShear": {"shear": 10.0},
    "RandomSnow": {},
    "RandomSolarize": {},
    "RandomThinPlateSpline": {},
    "RandomTranslate": {"translate_x": (0.1, 0.2)},
    "RandomVerticalFlip": {},
    "CenterCrop": {"size": 12},
    "Normalize": {"mean": torch.zeros(3), "std": torch.ones(3)},
    "PadTo": {"size": (32, 32)},
    "Resize": {"size": (12, 12)},
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_augmentation(name: str) -> None:
    chance = {} if name in ("CenterCrop", "Normalize", "PadTo", "Resize") else {"p": 0.9}
    made = getattr(kornia.augmentation, name)(**AUGMENTATIONS[name], **chance)
    made(pictures(3).detach()[..., :16, :16] if name == "RandomJPEG" else pictures(3).detach())


@pytest.mark.parametrize("name", ["RandomMixUpV2", "RandomCutMixV2", "RandomMosaic", "RandomJigsaw"])
def test_pictures_are_mixed(name: str) -> None:
    given: dict[str, Any] = {"RandomMosaic": {"output_size": (SIZE, SIZE)}, "RandomJigsaw": {"grid": (2, 2)}}.get(
        name, {}
    )
    made = getattr(kornia.augmentation, name)(p=1.0, **given)
    label = torch.tensor([0, 1], device=DEVICE)
    made(pictures().detach(), *([label] if "Mix" in name else []))


def test_pipelines() -> None:
    steps = [
        kornia.augmentation.RandomHorizontalFlip(p=0.9),
        kornia.augmentation.RandomAffine(20.0, p=0.9),
        kornia.augmentation.ColorJiggle(0.1),
    ]
    pipeline = kornia.augmentation.AugmentationSequential(*steps, data_keys=["input", "mask", "bbox_xyxy", "keypoints"])
    boxed = torch.tensor([[[1.0, 1.0, 8.0, 8.0]]] * BATCH, device=DEVICE)
    pipeline(pictures().detach(), (pictures(1).detach() > 0.5).float(), boxed, points())
    pipeline.inverse(pictures().detach(), (pictures(1).detach() > 0.5).float(), boxed, points())
    for policy in (
        kornia.augmentation.auto.RandAugment(2, 9),
        kornia.augmentation.auto.AutoAugment(),
        kornia.augmentation.auto.TrivialAugment(),
    ):
        policy(pictures().detach())


def test_trackers_and_models() -> None:
    registrator = kornia.geometry.ImageRegistrator("similarity", num_iterations=2, pyramid_levels=2).to(DEVICE)
    registrator.register(pictures(1).detach()[:1], pictures(1).detach()[1:])
    kornia.contrib.ExtractTensorPatches(8)(pictures())
    kornia.contrib.CombineTensorPatches((16, 16), 8)(torch.rand(BATCH, 4, 3, 8, 8, device=DEVICE))
    kornia.contrib.connected_components((pictures(1).detach() > 0.5).float(), 5)
    kornia.contrib.distance_transform((pictures(1).detach() > 0.5).float())
    kornia.contrib.KMeans(3, None, 0.1, 5, 0).fit(torch.rand(20, 2, device=DEVICE))
