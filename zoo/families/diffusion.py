"""diffusion: policies that make a chunk of actions of noise, step by step."""

from __future__ import annotations

import copy
import itertools
import math
from collections import deque

import torch
from attacks.draws import normal, uniform
from torch import Tensor, nn

from zoo.families.vision import lively
from zoo.register import policy

_DIFFUSERS = ("diffusers",)
#: Length of a chunk, actions, and what is seen.
HORIZON, ACTIONS, SEEN = 8, 3, 10


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        half = self.dim // 2
        rate = math.log(10000) / (half - 1)
        angles = x[:, None] * torch.exp(torch.arange(half, device=x.device) * -rate)[None, :]
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


class Conv1dBlock(nn.Sequential):
    def __init__(self, channels: int, out: int, kernel: int = 3, groups: int = 4) -> None:
        convolution = nn.Conv1d(channels, out, kernel, padding=kernel // 2)
        super().__init__(convolution, nn.GroupNorm(groups, out), nn.Mish())


class ResidualBlock(nn.Module):
    """Two convolutions; the condition scales and shifts what is between them (FiLM)."""

    def __init__(self, channels: int, out: int, condition: int) -> None:
        super().__init__()
        self.out = out
        self.blocks = nn.ModuleList([Conv1dBlock(channels, out), Conv1dBlock(out, out)])
        self.film = nn.Sequential(
            nn.Mish(), nn.Linear(condition, out * 2), nn.Unflatten(-1, (-1, 1))
        )
        self.skip = nn.Conv1d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        y = self.blocks[0](x)
        film = self.film(condition)
        film = film.reshape(film.shape[0], 2, self.out, 1)
        y = film[:, 0, ...] * y + film[:, 1, ...]
        return self.blocks[1](y) + self.skip(x)


class ConditionalUnet1d(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (16, 32), step: int = 16) -> None:
        super().__init__()
        self.embed = nn.Sequential(
            SinusoidalPosEmb(step), nn.Linear(step, step * 4), nn.Mish(), nn.Linear(step * 4, step)
        )
        sizes = [ACTIONS, *widths]
        pairs = list(itertools.pairwise(sizes))
        condition = step + SEEN
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        for number, (channels, out) in enumerate(pairs):
            last = number == len(pairs) - 1
            shrink = nn.Identity() if last else nn.Conv1d(out, out, 3, 2, 1)
            blocks = [ResidualBlock(channels, out, condition), ResidualBlock(out, out, condition)]
            self.down.append(nn.ModuleList([*blocks, shrink]))
        self.middle = ResidualBlock(widths[-1], widths[-1], condition)
        for channels, out in reversed(pairs[1:]):
            block = ResidualBlock(out * 2, channels, condition)
            self.up.append(nn.ModuleList([block, nn.ConvTranspose1d(channels, channels, 4, 2, 1)]))
        self.final = nn.Sequential(
            Conv1dBlock(widths[0], widths[0]), nn.Conv1d(widths[0], ACTIONS, 1)
        )
        lively(self)

    def forward(self, sample: Tensor, timestep: Tensor | int | float, seen: Tensor) -> Tensor:
        x = sample.moveaxis(-1, -2)
        steps = timestep
        if not torch.is_tensor(steps):
            steps = torch.tensor([steps], dtype=torch.long, device=sample.device)
        elif len(steps.shape) == 0:
            steps = steps[None].to(sample.device)
        condition = torch.cat([self.embed(steps.expand(sample.shape[0])), seen], dim=-1)
        kept = []
        for first, second, shrink in self.down:
            x = second(first(x, condition), condition)
            kept.append(x)
            x = shrink(x)
        x = self.middle(x, condition)
        for block, grow in self.up:
            x = grow(block(torch.cat((x, kept.pop()), dim=1), condition))
        return self.final(x).moveaxis(-1, -2)


@policy(
    "diffusion",
    inputs={"obs": normal(1, 2, 5), "noise": normal(1, HORIZON, ACTIONS)},
    needs=_DIFFUSERS,
)
def diffusion_unet_ddim():
    """DDIM of diffusers; the actions that will be carried out are cut of the chunk."""
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler

    net = ConditionalUnet1d()
    scheduler = DDIMScheduler(
        num_train_timesteps=50,
        beta_schedule="squaredcos_cap_v2",
        clip_sample=True,
        set_alpha_to_one=True,
        prediction_type="epsilon",
    )

    def step(obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        seen = obs.reshape(obs.shape[0], -1)
        trajectory = noise
        scheduler.set_timesteps(5)
        for t in scheduler.timesteps:
            output = net(trajectory, t, seen)
            trajectory = scheduler.step(output, t, trajectory).prev_sample
        return {"action": trajectory[:, 1:5], "action_pred": trajectory}

    return step


@policy(
    "diffusion",
    inputs={
        "obs": normal(1, SEEN),
        "noise": normal(1, HORIZON, ACTIONS),
        "steps_noise": normal(6, 1, HORIZON, ACTIONS),
    },
    needs=_DIFFUSERS,
)
def diffusion_unet_ddpm():
    """Ancestral steps with diffusers: `eta=1`, and noise of its own for every step."""
    from diffusers import DDIMScheduler

    net = ConditionalUnet1d((16, 24))
    scheduler = DDIMScheduler(num_train_timesteps=30, beta_schedule="squaredcos_cap_v2")
    scheduler.set_timesteps(6)

    def step(obs: Tensor, noise: Tensor, steps_noise: Tensor) -> Tensor:
        sample = noise
        for t, variance in zip(scheduler.timesteps, steps_noise, strict=True):
            out = scheduler.step(net(sample, t, obs), t, sample, eta=1.0, variance_noise=variance)
            sample = out.prev_sample
        return sample

    return step


@policy(
    "diffusion",
    inputs={"obs": normal(1, SEEN), "noise": normal(7, 1, HORIZON, ACTIONS)},
    style="module",
    name="diffusion_own_ddpm",
)
class OwnDdpm(nn.Module):
    """A DDPM loop as people write it, its tables in buffers; the network predicts the sample."""

    def __init__(self, steps: int = 6) -> None:
        super().__init__()
        self.steps = steps
        width = HORIZON * ACTIONS
        self.time = nn.Sequential(SinusoidalPosEmb(8), nn.Linear(8, 8), nn.Mish())
        self.net = nn.Sequential(
            nn.Linear(width + 8 + SEEN, 64), nn.Mish(), nn.Linear(64, 64), nn.Mish(),
            nn.Linear(64, width),
        )  # fmt: skip
        betas = torch.linspace(1e-2, 0.3, steps, dtype=torch.float64)
        alphas = 1.0 - betas
        bar = torch.cumprod(alphas, 0)
        before = torch.cat([torch.ones(1, dtype=torch.float64), bar[:-1]])
        variance = betas * (1 - before) / (1 - bar)
        tables = {
            "of_start": betas * before.sqrt() / (1 - bar),
            "of_sample": (1 - before) * alphas.sqrt() / (1 - bar),
            "log_variance": variance.clamp(min=1e-20).log(),
        }
        for name, table in tables.items():
            self.register_buffer(name, table.float())
        lively(self)

    def forward(self, obs: Tensor, noise: Tensor) -> Tensor:
        x = noise[0]
        for i in reversed(range(self.steps)):
            t = torch.full((x.shape[0],), i, dtype=torch.long)
            start = self.net(torch.cat([x.flatten(1), self.time(t), obs], -1)).view_as(x)
            mean = self.of_start[t] * start.clamp(-1, 1) + self.of_sample[t] * x
            more = noise[self.steps - i] if i > 0 else 0.0
            x = mean + (0.5 * self.log_variance[t]).exp() * more
        return x


@policy(
    "diffusion",
    inputs={"obs": normal(1, SEEN), "noise": normal(1, HORIZON, ACTIONS)},
    needs=_DIFFUSERS,
)
def diffusion_dpm_solver():
    """A multistep solver of diffusers, which keeps the last outputs of the network in a list."""
    from diffusers import DPMSolverMultistepScheduler

    net = ConditionalUnet1d((16, 24))
    scheduler = DPMSolverMultistepScheduler(
        num_train_timesteps=50, beta_schedule="squaredcos_cap_v2", prediction_type="sample"
    )

    def step(obs: Tensor, noise: Tensor) -> Tensor:
        scheduler.set_timesteps(4)
        sample = noise
        for t in scheduler.timesteps:
            sample = scheduler.step(net(sample, t, obs), t, sample, return_dict=False)[0]
        return sample

    return step


@policy(
    "diffusion",
    inputs={"obs": normal(1, 5), "noise": normal(1, HORIZON, ACTIONS)},
    passes=6,
    name="diffusion_flow_euler",
)
class FlowEuler:
    """Flow matching over the last two observations, in equal steps of Euler's."""

    def __init__(self) -> None:
        width = HORIZON * ACTIONS
        self.velocity = lively(
            nn.Sequential(nn.Linear(width + 10 + 1, 64), nn.SiLU(), nn.Linear(64, width))
        )
        self.history = deque([torch.zeros(1, 5)] * 2, maxlen=2)
        self.num_steps = 5

    def __call__(self, obs: Tensor, noise: Tensor) -> Tensor:
        self.history.append(obs)
        seen = torch.cat(list(self.history), dim=-1)
        x, dt = noise.flatten(1), 1.0 / self.num_steps
        for k in range(self.num_steps):
            t = torch.full((1, 1), k * dt)
            x = x + dt * self.velocity(torch.cat([x, seen, t], dim=-1))
        return x.unflatten(-1, (HORIZON, ACTIONS))


@policy(
    "diffusion",
    inputs={"obs": normal(1, SEEN), "noise": normal(1, HORIZON, ACTIONS)},
    needs=_DIFFUSERS,
)
def diffusion_flow_scheduler():
    """Euler steps of diffusers for flow matching, with shifted times."""
    from diffusers import FlowMatchEulerDiscreteScheduler

    net = ConditionalUnet1d((16, 24))
    scheduler = FlowMatchEulerDiscreteScheduler(num_train_timesteps=100, shift=2.0)

    def step(obs: Tensor, noise: Tensor) -> Tensor:
        scheduler.set_timesteps(4)
        sample = noise
        for t in scheduler.timesteps:
            sample = scheduler.step(net(sample, t, obs), t, sample).prev_sample
        return sample

    return step


@policy(
    "diffusion",
    inputs={"obs": normal(1, SEEN), "noise": normal(1, HORIZON, ACTIONS)},
    style="method",
    name="diffusion_consistency",
)
class Consistency:
    """One step of a consistency model, whose weights are a moving average of those trained."""

    def __init__(self, decay: float = 0.9) -> None:
        self.net = ConditionalUnet1d((16, 24))
        self.ema_model = copy.deepcopy(self.net).requires_grad_(False).eval()
        for _ in range(3):
            self.train_a_little(decay)
        self.sigma_data, self.sigma_min, self.sigma = 0.5, 0.002, 20.0

    def train_a_little(self, decay: float) -> None:
        with torch.no_grad():
            for ours, ema in zip(self.net.parameters(), self.ema_model.parameters(), strict=True):
                ours.add_(torch.randn_like(ours) * 0.1)
                ema.mul_(decay).add_(ours.data, alpha=1 - decay)

    def step(self, obs: Tensor, noise: Tensor) -> Tensor:
        sigma = torch.full((noise.shape[0], 1, 1), self.sigma)
        skip = self.sigma_data**2 / ((sigma - self.sigma_min) ** 2 + self.sigma_data**2)
        out = self.sigma_data * (sigma - self.sigma_min) / (sigma**2 + self.sigma_data**2).sqrt()
        within = (sigma**2 + self.sigma_data**2).rsqrt()
        found = self.ema_model(noise * sigma * within, 250 * sigma.log().flatten(), obs)
        actions = (skip * noise * sigma + out * found).clamp(-1.0, 1.0)
        return actions


@policy(
    "diffusion",
    inputs={"obs": normal(1, 4, 6), "goal": normal(1, 3), "noise": normal(1, HORIZON, ACTIONS)},
    style="module",
    name="diffusion_transformer",
)
class DiffusionTransformer(nn.Module):
    """torch's transformer over the chunk, a causal mask, and two guided DDIM steps."""

    def __init__(self, dim: int = 32) -> None:
        super().__init__()
        self.input, self.condition = nn.Linear(ACTIONS, dim), nn.Linear(6, dim)
        self.goal, self.time = nn.Linear(3, dim), SinusoidalPosEmb(dim)
        self.place = nn.Parameter(torch.zeros(1, HORIZON, dim))
        self.encoder = nn.Sequential(nn.Linear(dim, 4 * dim), nn.Mish(), nn.Linear(4 * dim, dim))
        layer = nn.TransformerDecoderLayer(
            dim, 4, 2 * dim, 0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, ACTIONS)
        mask = (torch.triu(torch.ones(HORIZON, HORIZON)) == 1).transpose(0, 1)
        mask = mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)
        self.register_buffer("mask", mask)
        self.register_buffer("bar", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0))
        lively(self)

    def predict(self, sample: Tensor, t: int, obs: Tensor, goal: Tensor) -> Tensor:
        time = self.time(torch.full((len(sample),), t)).unsqueeze(1)
        memory = torch.cat([time, self.goal(goal).unsqueeze(1), self.condition(obs)], dim=1)
        x = self.decoder(self.input(sample) + self.place, self.encoder(memory), tgt_mask=self.mask)
        return self.head(self.norm(x))

    def forward(self, obs: Tensor, goal: Tensor, noise: Tensor) -> Tensor:
        sample = noise
        obs, goal = obs.repeat(2, 1, 1), torch.cat([goal, torch.zeros_like(goal)])
        for t, before in ((19, 9), (9, 0)):
            with_goal, without = self.predict(sample.repeat(2, 1, 1), t, obs, goal).chunk(2)
            noisy = without + 1.5 * (with_goal - without)
            start = (sample - (1 - self.bar[t]).sqrt() * noisy) / self.bar[t].sqrt()
            start = start.clamp(-1, 1)
            sample = self.bar[before].sqrt() * start + (1 - self.bar[before]).sqrt() * noisy
        return sample


@policy(
    "diffusion",
    inputs={"obs": uniform(-1, 1, 1, SEEN), "noise": normal(1, HORIZON, ACTIONS)},
    passes=6,
    name="diffusion_warm_start",
)
class WarmStart:
    """The next plan starts from the last one, moved on by a tick and made a little noisy."""

    def __init__(self) -> None:
        self.net = ConditionalUnet1d((16, 24))
        self.plan = torch.zeros(1, HORIZON, ACTIONS)
        self.bar = torch.cos(torch.linspace(0.1, 1.4, 10)) ** 2

    def __call__(self, obs: Tensor, noise: Tensor) -> dict[str, Tensor]:
        moved = torch.cat([self.plan[:, 1:], self.plan[:, -1:]], dim=1)
        a = self.bar
        x = a[4].sqrt() * moved + (1 - a[4]).sqrt() * noise
        for t, s in ((4, 2), (2, 0)):
            eps = self.net(x, t, obs)
            start = ((x - (1 - a[t]).sqrt() * eps) / a[t].sqrt()).clamp(-1, 1)
            x = a[s].sqrt() * start + (1 - a[s]).sqrt() * eps
        self.plan = start
        return {"action": self.plan[:, 0], "plan": self.plan}
