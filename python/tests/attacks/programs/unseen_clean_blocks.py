"""Blocks as in timm, transformers, diffusers and einops code, in miniature."""

from __future__ import annotations

import math
from functools import partial
from typing import Callable, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import flags, integers, normal
from attacks.registry import ALL, clean


class DropPath(nn.Module):
    def __init__(self, drop_prob: float = 0.0) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        if self.drop_prob == 0.0 or not self.training:
            return x
        keep = 1 - self.drop_prob
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask / keep


class LayerScale(nn.Module):
    def __init__(self, dim: int, init: float = 1e-1, inplace: bool = False) -> None:
        super().__init__()
        self.inplace, self.gamma = inplace, nn.Parameter(init * torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(self.gamma) if self.inplace else x * self.gamma


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.scale, self.fused = heads, (dim // heads) ** -0.5, fused
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        q, k, v = (
            self.qkv(x)
            .reshape(B, N, 3, self.heads, C // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        if self.fused:
            x = F.scaled_dot_product_attention(
                q, k, v, dropout_p=self.drop.p if self.training else 0.0
            )
        else:
            attn = self.drop(((q * self.scale) @ k.transpose(-2, -1)).softmax(dim=-1))
            x = attn @ v
        return self.proj(x.transpose(1, 2).reshape(B, N, C))


class Block(nn.Module):
    def __init__(
        self, dim: int, heads: int, fused: bool, norm_layer: Callable = nn.LayerNorm
    ) -> None:
        super().__init__()
        self.norm1, self.attn, self.ls1, self.dp1 = (
            norm_layer(dim),
            Attention(dim, heads, fused),
            LayerScale(dim),
            DropPath(0.1),
        )
        self.norm2, self.ls2, self.dp2 = (
            norm_layer(dim),
            LayerScale(dim, inplace=True),
            DropPath(0.1),
        )
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dp1(self.ls1(self.attn(self.norm1(x))))
        return x + self.dp2(self.ls2(self.mlp(self.norm2(x))))


@clean("H", rec={"img": normal(1, 3, 8, 8)}, backends=("jit", "onnx"), passes=3, style="module")
class CcTinyVit(nn.Module):
    """timm's VisionTransformer: patches, class token, position, blocks, pooled head."""

    def __init__(self) -> None:
        super().__init__()
        norm = partial(nn.LayerNorm, eps=1e-6)
        self.patch = nn.Conv2d(3, 8, 4, 4)
        self.cls_token, self.pos_embed = (
            nn.Parameter(torch.randn(1, 1, 8) * 0.02),
            nn.Parameter(torch.randn(1, 5, 8) * 0.02),
        )
        self.blocks = nn.Sequential(
            *[Block(8, 2, fused=i % 2 == 0, norm_layer=norm) for i in range(2)]
        )
        self.norm, self.head = norm(8), nn.Linear(8, 4)
        self.global_pool = "token"
        self.eval()

    def forward(self, img: Tensor) -> Tensor:
        x = self.patch(img).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        x = x[:, 1:].mean(dim=1) if self.global_pool == "avg" else x[:, 0]
        return self.head(x)


@clean("H", style="module", rec={"x": normal(1, 8, 6, 6)}, backends=("jit", "pt2"), passes=3)
class CcConvNextBlock(nn.Module):
    """ConvNeXt's block: depthwise, channels last, layer norm, GRN, shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.dw, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8, eps=1e-6)
        self.pw1, self.pw2 = nn.Linear(8, 16), nn.Linear(16, 8)
        self.g, self.b = nn.Parameter(torch.ones(16) * 0.3), nn.Parameter(torch.ones(16) * 0.1)

    def grn(self, x: Tensor) -> Tensor:
        g = x.norm(p=2, dim=(1, 2), keepdim=True)
        n = g / (g.mean(dim=-1, keepdim=True) + 1e-6)
        return x + torch.addcmul(self.b.view(1, 1, 1, -1), self.g.view(1, 1, 1, -1), x * n)

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        x = self.norm(self.dw(x).permute(0, 2, 3, 1))
        x = self.pw2(self.grn(F.gelu(self.pw1(x))))
        return x.permute(0, 3, 1, 2) + shortcut


@clean("H", rec={"x": normal(1, 8, 5, 5)}, backends="onnx", passes=3)
class CcSqueezeExcite(nn.Module):
    """An inverted residual with squeeze and excitation, batch norm frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(8, 16, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(inplace=True)
        )
        self.dw = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1, groups=16),
            nn.BatchNorm2d(16),
            nn.Hardswish(inplace=True),
        )
        self.reduce, self.excite, self.project = (
            nn.Conv2d(16, 4, 1),
            nn.Conv2d(4, 16, 1),
            nn.Conv2d(16, 8, 1),
        )
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.add_(0.2), m.running_var.mul_(1.5)
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        y = self.dw(self.expand(x))
        se = y.mean((2, 3), keepdim=True)
        y = y * F.hardsigmoid(self.excite(F.relu(self.reduce(se), inplace=True)))
        return x + self.project(y)


class LlamaRMSNorm(nn.Module):
    def __init__(self, hidden: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(hidden)), eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(input_dtype)


def rotate_half(x: Tensor) -> Tensor:
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


@clean("H", style="module", rec={"h": normal(1, 5, 16)}, backends=ALL, passes=3)
class CcLlamaLayer(nn.Module):
    """A Llama layer: RMS norm, rotary embedding, grouped keys, causal mask, gated MLP."""

    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = LlamaRMSNorm(16), LlamaRMSNorm(16)
        self.q, self.k, self.v, self.o = (nn.Linear(16, n, bias=False) for n in (16, 8, 8, 16))
        self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)
        self.register_buffer(
            "inv_freq", 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4)), persistent=False
        )

    def repeat_kv(self, x: Tensor, n: int) -> Tensor:
        b, h, s, d = x.shape
        return x[:, :, None].expand(b, h, n, s, d).reshape(b, h * n, s, d)

    def forward(self, h: Tensor) -> Tensor:
        b, s, _ = h.shape
        emb = torch.outer(torch.arange(s).float(), self.inv_freq)
        emb = torch.cat((emb, emb), dim=-1)
        cos, sin = emb.cos(), emb.sin()
        x = self.n1(h)
        q, k, v = (p(x).view(b, s, -1, 4).transpose(1, 2) for p in (self.q, self.k, self.v))
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        k, v = self.repeat_kv(k, 2), self.repeat_kv(v, 2)
        scores = q @ k.transpose(2, 3) / math.sqrt(4)
        mask = torch.full((s, s), torch.finfo(h.dtype).min).triu(diagonal=1)
        attn = F.softmax(scores + mask, dim=-1, dtype=torch.float32).to(q.dtype)
        h = h + self.o((attn @ v).transpose(1, 2).reshape(b, s, -1))
        x = self.n2(h)
        return h + self.down(F.silu(self.gate(x)) * self.up(x))


@clean(
    "H",
    rec={"ids": integers(0, 20, 1, 6), "mask": integers(0, 2, 1, 6)},
    backends=("jit", "onnx"),
    passes=3,
)
class CcBertPooler(nn.Module):
    """Ids to embeddings, an extended attention mask, one layer, pooled, tied output weights."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.pos = nn.Embedding(20, 8, padding_idx=0), nn.Embedding(6, 8)
        self.register_buffer("position_ids", torch.arange(6).expand((1, -1)), persistent=False)
        self.ln, self.attn = nn.LayerNorm(8, eps=1e-12), nn.Linear(8, 24)
        self.decoder = nn.Linear(8, 20, bias=False)
        self.decoder.weight = self.word.weight
        self.eval()

    def forward(self, ids: Tensor, mask: Tensor) -> dict:
        seq = ids.size(1)
        mask = torch.cat([torch.ones_like(mask[:, :1]), mask[:, 1:]], dim=1)
        x = self.ln(self.word(ids) + self.pos(self.position_ids[:, :seq]))
        extended = (1.0 - mask[:, None, :].to(x.dtype)) * -10000.0
        q, k, v = self.attn(x).split(8, dim=-1)
        x = x + ((q @ k.mT) / 8**0.5 + extended).softmax(-1) @ v
        return {"pooled": torch.tanh(x[:, 0]), "logits": self.decoder(x)}


@clean(
    "H", rec={"x": normal(1, 4, 6, 6), "t": integers(0, 100, 1)}, backends=("jit", "pt2"), passes=3
)
class CcResnetBlock2d(nn.Module):
    """diffusers' ResnetBlock2D with a time embedding by scale and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, 4), nn.Conv2d(4, 6, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(2, 6), nn.Conv2d(6, 6, 3, padding=1)
        self.time_emb_proj, self.shortcut = nn.Linear(8, 12), nn.Conv2d(4, 6, 1)
        self.output_scale_factor = 1.4

    @staticmethod
    def get_timestep_embedding(timesteps: Tensor, dim: int = 8, flip: bool = True) -> Tensor:
        assert len(timesteps.shape) == 1, "Timesteps should be a 1d-array"
        half = dim // 2
        exponent = -math.log(10000) * torch.arange(0, half, dtype=torch.float32) / half
        emb = timesteps[:, None].float() * torch.exp(exponent)[None, :]
        emb = torch.cat([emb.sin(), emb.cos()], dim=-1)
        return torch.cat([emb[:, half:], emb[:, :half]], dim=-1) if flip else emb

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        temb = self.time_emb_proj(F.silu(self.get_timestep_embedding(t)))[:, :, None, None]
        h = self.conv1(F.silu(self.norm1(x)))
        scale, shift = torch.chunk(temb, 2, dim=1)
        h = self.norm2(h) * (1 + scale) + shift
        return (self.shortcut(x) + self.conv2(F.silu(h))) / self.output_scale_factor


@clean("H", rec={"x": normal(1, 4, 8, 8)}, backends="onnx", passes=3)
class CcUpDown(nn.Module):
    """Downsample with asymmetric padding, nearest upsample, concatenated with the skip."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up, self.out = (
            nn.Conv2d(4, 4, 3, stride=2),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.Conv2d(8, 2, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.down(F.pad(x, (0, 1, 0, 1), mode="constant", value=0))
        h = self.up(F.interpolate(h, scale_factor=2.0, mode="nearest"))
        return self.out(torch.cat([h, x], dim=1))


@clean("H", rec={"x": normal(1, 9, 8), "ctx": normal(1, 4, 6)}, backends="jit", passes=3)
class CcCrossAttentionGeglu(nn.Module):
    """diffusers' basic transformer block: cross attention, then GEGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(8, 8), nn.Linear(6, 16), nn.Linear(8, 8)
        self.geglu, self.out = nn.Linear(8, 32), nn.Linear(16, 8)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, -1)).transpose(1, 2)

    def forward(self, x: Tensor, ctx: Tensor) -> Tensor:
        k, v = self.kv(ctx).chunk(2, dim=-1)
        a = F.scaled_dot_product_attention(self.heads(self.q(x)), self.heads(k), self.heads(v))
        x = x + self.o(a.transpose(1, 2).flatten(2))
        hidden, gate = self.geglu(x).chunk(2, dim=-1)
        return x + self.out(hidden * F.gelu(gate))


def rearrange(x: Tensor, pattern: str, **sizes: int) -> Tensor:
    """A tiny einops: two known patterns, looked up by their text."""
    if pattern == "b c (h p1) (w p2) -> b (h w) (p1 p2 c)":
        b, c, hh, ww = x.shape
        p1, p2 = sizes["p1"], sizes["p2"]
        x = x.reshape(b, c, hh // p1, p1, ww // p2, p2).permute(0, 2, 4, 3, 5, 1)
        return x.reshape(b, (hh // p1) * (ww // p2), p1 * p2 * c)
    if pattern == "b n (h d) -> b h n d":
        b, n, hd = x.shape
        return x.reshape(b, n, sizes["h"], hd // sizes["h"]).permute(0, 2, 1, 3)
    raise KeyError(pattern)


@clean("H", rec={"img": normal(2, 3, 4, 4)}, backends=ALL, passes=3)
class CcEinopsPatches(nn.Module):
    """Patches by an einops-like function with patterns, and attention by einsum."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(12, 8)

    def forward(self, img: Tensor) -> Tensor:
        tokens = self.embed(rearrange(img, "b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=2, p2=2))
        h = rearrange(tokens, "b n (h d) -> b h n d", h=2)
        attn = torch.einsum("b h i d, b h j d -> b h i j", h, h).softmax(-1)
        return torch.einsum("bhij,bhjd->bihd", attn, h).flatten(2)


@clean("H", style="module", rec={"x": normal(2, 6)}, backends=("jit", "onnx"), passes=4)
class CcSoftMoe(nn.Module):
    """A mixture of experts with soft gating and a temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3)) for _ in range(4)]
        )
        self.gate, self.temperature = nn.Linear(6, 4), 0.7
        self.usage: dict[int, float] = {}

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.gate(x) / self.temperature).softmax(dim=-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-2)
        self.usage = {i: float(w) for i, w in enumerate(weights.mean(0))}
        return (weights.unsqueeze(-1) * outputs).sum(dim=-2)


@clean("H", rec={"x": normal(1, 3, 6)}, backends="jit", passes=3)
class CcTopKRouter(nn.Module):
    """Mixtral's router made dense: top two weights scattered back, every expert computed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(6, 4, bias=False)
        self.w = nn.Parameter(torch.randn(4, 6, 6) * 0.3)

    def forward(self, x: Tensor) -> Tensor:
        logits = self.gate(x)
        top, chosen = torch.topk(F.softmax(logits, dim=-1), 2, dim=-1)
        top = top / top.sum(-1, keepdim=True)
        dense = torch.zeros_like(logits).scatter(-1, chosen, top)
        return torch.einsum("bne,eij,bnj->bni", dense, self.w, x)


@clean("H", rec={"x": normal(1, 4, 8), "pad": flags(0.3, 1, 4)}, backends=("jit", "pt2"), passes=3)
class CcMaskedPool(nn.Module):
    """Masked mean and max over tokens; one that is all padding counts as one token."""

    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(16, 4)

    def forward(self, x: Tensor, pad: Tensor) -> Tensor:
        keep = (~pad).unsqueeze(-1).to(x.dtype)
        mean = (x * keep).sum(1) / keep.sum(1).clamp(min=1.0)
        top = x.masked_fill(pad.unsqueeze(-1), -1e4).amax(dim=1).clamp(min=-10.0)
        return self.proj(torch.cat([mean, top], -1))


class PreTrainedModel(nn.Module):
    """The base class: configuration, weight init and tying, output classes."""

    def __init__(self, config: dict) -> None:
        super().__init__()
        self.config = config

    def post_init(self) -> None:
        self.apply(self._init_weights)
        self.tie_weights()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=self.config.get("initializer_range", 0.3))

    def tie_weights(self) -> None:
        inp, out = self.get_input_embeddings(), self.get_output_embeddings()
        if self.config.get("tie_word_embeddings", True) and out is not None:
            out.weight = inp.weight


class ModelOutput(dict):
    def __getattr__(self, key: str) -> Optional[Tensor]:
        return self[key]


@clean("H", rec={"ids": integers(0, 12, 1, 4)}, backends="jit", passes=3, style="method")
class CcTiedLm:
    """transformers' class hierarchy: post_init, tied weights, ModelOutput, return_dict."""

    def __init__(self) -> None:
        class Lm(PreTrainedModel):
            def __init__(self, config: dict) -> None:
                super().__init__(config)
                self.emb, self.mix = nn.Embedding(12, 6), nn.Linear(6, 6)
                self.lm_head = nn.Linear(6, 12, bias=False)
                self.post_init()

            def get_input_embeddings(self) -> nn.Module:
                return self.emb

            def get_output_embeddings(self) -> nn.Module:
                return self.lm_head

            def forward(self, input_ids=None, output_hidden_states=None, return_dict=None):
                output_hidden_states = (
                    output_hidden_states if output_hidden_states is not None else False
                )
                all_hidden = () if output_hidden_states else None
                h = self.emb(input_ids)
                if output_hidden_states:
                    all_hidden = all_hidden + (h,)
                logits = self.lm_head(torch.tanh(self.mix(h.cumsum(1))))
                if not return_dict:
                    return tuple(v for v in (logits, all_hidden) if v is not None)
                return ModelOutput(logits=logits, hidden_states=all_hidden)

        self.model = Lm({"initializer_range": 0.4}).eval()

    def step(self, ids: Tensor) -> Tensor:
        out = self.model(input_ids=ids, return_dict=True)
        logits = out.logits[:, -1]
        return logits


@clean("H", rec={"x": normal(1, 2, 4)}, backends=("jit", "pt2"), passes=5)
class CcStaticKvCache(nn.Module):
    """A static cache of keys and values that rolls, with attention over all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))
        self.register_buffer("keys", torch.zeros(1, 6, 4))
        self.register_buffer("values", torch.zeros(1, 6, 4))

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        self.keys = torch.cat([self.keys[:, n:], self.k(x)], dim=1)
        self.values = torch.cat([self.values[:, n:], self.v(x)], dim=1)
        attn = (self.q(x) @ self.keys.transpose(1, 2) / 2.0).softmax(-1)
        return attn @ self.values


@clean("H", rec={"x": normal(1, 6)}, backends="onnx", passes=5)
class CcSelectiveScan(nn.Module):
    """One step of a Mamba-like state space with a rolled convolution state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_state, self.ssm_state = torch.zeros(1, 6, 3), torch.zeros(1, 6, 4)
        self.conv_w, self.A_log = (
            torch.randn(6, 3) * 0.4,
            torch.log(torch.arange(1, 5).float()).repeat(6, 1),
        )
        self.x_proj, self.dt_proj, self.D = nn.Linear(6, 8), nn.Linear(6, 6), torch.ones(6)

    def forward(self, x: Tensor) -> Tensor:
        self.conv_state = torch.roll(self.conv_state, shifts=-1, dims=-1)
        self.conv_state[:, :, -1] = x
        u = F.silu((self.conv_state * self.conv_w).sum(-1))
        B, C = self.x_proj(u).chunk(2, dim=-1)
        dt = F.softplus(self.dt_proj(u))
        dA = torch.exp(torch.einsum("bd,dn->bdn", dt, -torch.exp(self.A_log)))
        self.ssm_state = self.ssm_state * dA + torch.einsum("bd,bn->bdn", dt * u, B)
        return torch.einsum("bdn,bn->bd", self.ssm_state, C) + self.D * u


@clean("H", style="module", rec={"pts": normal(1, 10, 3)}, backends="jit", passes=3)
class CcPointNet(nn.Module):
    """PointNet: a shared MLP by 1-D convolutions, a max, and a learned 3 by 3 transform."""

    def __init__(self) -> None:
        super().__init__()
        self.tnet = nn.Sequential(nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU())
        self.fc, self.feat, self.head = nn.Linear(8, 9), nn.Conv1d(3, 8, 1), nn.Linear(8, 2)
        self.eval()

    def forward(self, pts: Tensor) -> Tensor:
        x = pts.transpose(2, 1)
        g = torch.max(self.tnet(x), 2, keepdim=True)[0].view(-1, 8)
        iden = torch.eye(3).flatten().view(1, 9).repeat(pts.size(0), 1)
        trans = (self.fc(g) + iden).view(-1, 3, 3)
        x = torch.bmm(x.transpose(2, 1), trans).transpose(2, 1)
        return self.head(F.relu(self.feat(x)).amax(-1))


@clean("H", style="module", rec={"x": normal(1, 12, 4)}, backends=("jit", "onnx"), passes=3)
class CcTcn(nn.Module):
    """A temporal convolutional network: dilated, causal by padding and chopping."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(3):
            d = 2**i
            self.layers.append(nn.Conv1d(4, 4, 2, padding=d, dilation=d))
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x.mT
        for layer in self.layers:
            chomp = layer.padding[0]
            x = F.relu(x + layer(x)[:, :, :-chomp].contiguous())
        return self.head(x[..., -1])
