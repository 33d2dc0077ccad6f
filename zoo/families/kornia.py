"""kornia: images and cameras in front of a policy."""

from __future__ import annotations

import torch
from attacks.draws import normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.register import policy

RGB = uniform(0, 1, 1, 3, 32, 32)


def encoder(channels: int, out: int = 6) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, 2),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, 2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(72, out),
    ).eval()


@policy("kornia", inputs={"image": RGB}, fresh={"image": RGB}, needs=("kornia",))
def kornia_bird_view():
    """The road from above by a fixed homography, and a steering network."""
    import kornia.geometry.transform as kgt

    road = torch.tensor([[[10.0, 12.0], [22.0, 12.0], [31.0, 30.0], [0.0, 30.0]]])
    square = torch.tensor([[[4.0, 0.0], [20.0, 0.0], [20.0, 23.0], [4.0, 23.0]]])
    matrix = kgt.get_perspective_transform(road, square)
    net = encoder(3, 2)

    def step(image: Tensor) -> dict[str, Tensor]:
        view = kgt.warp_perspective(image, matrix, dsize=(24, 24))
        return {"view": view, "steering": 5 * net(view)}

    return step


@policy(
    "kornia",
    inputs={"image": RGB, "rate": normal(1, s=0.5)},
    fresh={"image": RGB},
    needs=("kornia",),
    passes=6,
    name="kornia_stabilised",
)
class Stabilised:
    """Turns the image back by the angle that a gyroscope's rate adds up to."""

    def __init__(self):
        import kornia.geometry.transform as kgt

        self.kgt = kgt
        self.roll = torch.zeros(1)
        self.centre = torch.tensor([[15.5, 15.5]])

    def __call__(self, image: Tensor, rate: Tensor) -> dict[str, Tensor]:
        self.roll = 0.9 * self.roll + torch.rad2deg(rate) * 0.3
        scale = torch.ones(1, 2)
        matrix = self.kgt.get_rotation_matrix2d(self.centre, -self.roll, scale)
        steady = self.kgt.warp_affine(image, matrix, dsize=(32, 32), padding_mode="border")
        small = self.kgt.resize(steady, (16, 16), antialias=True)
        return {"small": small, "roll": self.roll}


@policy("kornia", inputs={"image": RGB}, fresh={"image": RGB}, needs=("kornia",))
def kornia_colour_features():
    import kornia.color as kc

    head = nn.Sequential(nn.Linear(70, 32), nn.ELU(), nn.Linear(32, 4)).eval()
    pool = nn.AdaptiveAvgPool2d(3)

    def step(image: Tensor) -> dict[str, Tensor]:
        hsv, lab, grey = kc.rgb_to_hsv(image), kc.rgb_to_lab(image), kc.rgb_to_grayscale(image)
        red = ((hsv[:, :1] < 0.5) & (hsv[:, 1:2] > 0.4)).float().mean((2, 3))
        seen = torch.cat([hsv / 3.0, lab / 50.0, grey], dim=1)
        features = torch.cat([pool(seen).flatten(1), red, seen.std((2, 3))[:, :6]], dim=1)
        return {"action": 10 * head(features), "back": kc.hsv_to_rgb(hsv), "percent": 100 * red}

    return step


@policy("kornia", inputs={"image": RGB}, fresh={"image": RGB}, needs=("kornia",))
def kornia_edges():
    import kornia.filters as kf

    net = encoder(5)

    def step(image: Tensor) -> dict[str, Tensor]:
        smooth = kf.gaussian_blur2d(image, (5, 5), (1.2, 1.2))
        edges = kf.sobel(smooth)
        slopes = kf.spatial_gradient(smooth.mean(1, keepdim=True))[:, 0]
        planes = [slopes, edges.amax(1, keepdim=True), kf.laplacian(image, 3)[:, :1]]
        planes.append(kf.median_blur(image[:, :1], (3, 3)))
        return {"slopes": slopes, "features": 10 * net(torch.cat(planes, dim=1))}

    return step


@policy("kornia", inputs={"image": RGB}, fresh={"image": RGB}, needs=("kornia",))
def kornia_canny():
    """Canny's thinned edges as strengths, averaged over cells."""
    import kornia.filters as kf

    pool = nn.AvgPool2d(8)
    canny = kf.Canny(low_threshold=0.1, high_threshold=0.2, hysteresis=False)

    def step(image: Tensor) -> tuple[Tensor, Tensor]:
        strength, edges = canny(image)
        return pool(strength), pool(strength * edges)

    return step


@policy(
    "kornia",
    inputs={"pixels": uniform(2.0, 12.0, 1, 6, 2), "depth": uniform(0.4, 1.2, 1, 6, 1)}
    | {"mount": normal(1, 3, s=0.3)},
    needs=("kornia",),
    style="method",
)
def kornia_camera_points():
    """Pixels without distortion, in space, in the robot's frame, and in a second camera."""
    import kornia.geometry as kg

    camera = torch.tensor([[[30.0, 0.0, 16.0], [0.0, 30.0, 16.0], [0.0, 0.0, 1.0]]])
    lens = torch.tensor([[-0.12, 0.03, 0.001, -0.002, 0.0]])
    second = torch.eye(4)[None].clone()
    second[:, :3, 3] = torch.tensor([0.06, 0.0, 0.4])

    def step(pixels: Tensor, depth: Tensor, mount: Tensor) -> dict[str, Tensor]:
        straight = kg.calibration.undistort_points(pixels, camera, lens)
        points = kg.camera.unproject_points(straight, depth, camera[:, None])
        turn = kg.conversions.axis_angle_to_rotation_matrix(mount)
        pose = kg.conversions.Rt_to_matrix4x4(turn, 0.1 * mount[:, :, None])
        there = kg.linalg.transform_points(kg.linalg.inverse_transformation(pose), points)
        seen = kg.linalg.transform_points(second, points)
        return {"points": there, "seen": kg.camera.project_points(seen, camera[:, None])}

    return step


@policy("kornia", inputs={"axis_angle": normal(4, 3, s=0.5)}, needs=("kornia",))
def kornia_rotations():
    import kornia.geometry.conversions as kcv
    from kornia.geometry.liegroup import So3
    from kornia.geometry.quaternion import Quaternion

    def step(axis_angle: Tensor) -> dict[str, Tensor]:
        matrix = kcv.axis_angle_to_rotation_matrix(axis_angle)
        quat = kcv.rotation_matrix_to_quaternion(matrix)
        roll, pitch, yaw = kcv.euler_from_quaternion(*quat.unbind(-1))
        back = kcv.rotation_matrix_to_axis_angle(matrix)
        half = Quaternion.identity(4).slerp(Quaternion(quat), 0.5).data
        lie = So3.exp(0.5 * axis_angle).matrix()
        return {
            "euler": torch.stack([roll, pitch, yaw], -1),
            "back": back,
            "half": half,
            "lie": lie,
        }

    return step


@policy(
    "kornia",
    inputs={"frame": uniform(0, 1, 1, 1, 24, 24)},
    fresh={"frame": uniform(0, 1, 1, 1, 24, 24)},
    needs=("kornia",),
    passes=6,
    name="kornia_motion_mask",
)
class MotionMask:
    """What moves before a slow background, cleaned by an opening and a closing."""

    def __init__(self):
        import kornia.filters as kf
        import kornia.morphology as km

        self.kf, self.km = kf, km
        self.background = torch.full((1, 1, 24, 24), 0.5)
        self.kernel = torch.ones(3, 3)

    def __call__(self, frame: Tensor) -> dict[str, Tensor]:
        smooth = self.kf.box_blur(frame, (3, 3))
        moved = (smooth - self.background).abs()
        self.background = torch.lerp(self.background, smooth, 0.1)
        mask = self.km.closing(self.km.opening(moved, self.kernel), self.kernel)
        rim = self.km.gradient(moved, self.kernel)
        return {"mask": mask, "rim": rim, "percent": 100 * mask.mean((1, 2, 3))}


@policy(
    "kornia",
    inputs={"image": uniform(0, 1, 1, 3, 48, 64)},
    fresh={"image": uniform(0, 1, 1, 3, 48, 64)},
    needs=("kornia",),
    style="module",
    name="kornia_preprocessing",
)
class Preprocessing(nn.Module):
    """kornia's modules in a network: resize, crop, normalise, adjust."""

    def __init__(self):
        super().__init__()
        import kornia

        mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        self.pre = nn.Sequential(
            kornia.geometry.transform.Resize((36, 48)),
            kornia.augmentation.CenterCrop((32, 32), keepdim=True),
            kornia.enhance.AdjustContrast(1.2),
            kornia.enhance.Normalize(mean, std),
            kornia.filters.BlurPool2D(3, stride=2),
        )
        self.net = encoder(3)
        self.eval()

    def forward(self, image: Tensor) -> Tensor:
        return 10 * self.net(self.pre(image))


@policy("kornia", inputs={"depth": uniform(0.5, 2.0, 1, 1, 20, 24)}, needs=("kornia",))
def kornia_depth_normals():
    """A depth image as points and normals, and how steep the ground is."""
    from kornia.geometry.depth import depth_to_3d_v2, depth_to_normals

    camera = torch.tensor([[[20.0, 0.0, 12.0], [0.0, 20.0, 10.0], [0.0, 0.0, 1.0]]])
    up = torch.tensor([0.0, -1.0, 0.0]).view(1, 3, 1, 1)

    def step(depth: Tensor) -> dict[str, Tensor]:
        points = depth_to_3d_v2(depth[:, 0], camera)
        normals = depth_to_normals(depth, camera)
        slope = (normals * up).sum(1).abs().clamp(max=1.0)
        return {"nearest": points.flatten(1, 2).amin(1), "normals": normals, "slope": slope}

    return step


@policy(
    "kornia",
    style="own",
    inputs={"align/left": uniform(0, 1, 1, 1, 24, 24), "align/corners": normal(1, 4, 2, s=0.5)},
    fresh={"align/left": uniform(0, 1, 1, 1, 24, 24)},
    needs=("kornia",),
    passes=6,
    name="kornia_align_policy",
)
class AlignPolicy:
    """A homography from four tracked corners, the aligned patch, and a policy behind it."""

    def __init__(self, backend: str):
        import kornia.geometry as kg

        self.kg, self.backend = kg, backend
        self.corners = torch.tensor([[[2.0, 2.0], [21.0, 2.0], [21.0, 21.0], [2.0, 21.0]]])
        self.memory = torch.zeros(1, 1, 12, 12)
        self.net = encoder(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        left, moved = annotate.input_tensors(
            "align", {"left": given["align/left"], "corners": given["align/corners"]}
        )
        fit = self.kg.homography.find_homography_dlt(self.corners, self.corners + moved)
        straight = self.kg.transform.homography_warp(
            left, self.kg.conversions.normalize_homography(fit, (24, 24), (12, 12)), (12, 12)
        )
        self.memory = 0.7 * self.memory + 0.3 * straight
        annotate.output_tensors("align", {"patch": self.memory}, export_with=self.backend)

        patch = annotate.input_tensors("policy", {"patch": self.memory})
        action = torch.tanh(20 * self.net(patch))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}
