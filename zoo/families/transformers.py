"""transformers: language, vision and sequence models, and caches that are kept between ticks."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import by_tick, integers, normal, uniform
from torch import Tensor, nn

from zoo.families.vision import lively
from zoo.register import policy

_TRANSFORMERS = ("transformers",)
#: What all decoders here have in common.
SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "use_cache": False,
}
#: Tokens of an instruction, and how many of the eight are no padding.
TOKENS = integers(3, 64, 1, 8)
PADDED_RIGHT = by_tick(lambda tick: (torch.arange(8) < 4 + tick % 5).long()[None])
PADDED_LEFT = by_tick(lambda tick: (torch.arange(8) >= tick % 4).long()[None])


@policy(
    "transformers", inputs={"obs": normal(1, 6, 5)}, needs=_TRANSFORMERS, name="transformers_gpt2"
)
class Gpt2Actor:
    """GPT-2 over embedded observations, as in trajectory models."""

    def __init__(self) -> None:
        from transformers import GPT2Config, GPT2Model

        config = GPT2Config(
            vocab_size=8, n_embd=32, n_layer=2, n_head=4, n_positions=16, use_cache=False
        )
        self.embed = nn.Linear(5, 32)
        self.model = lively(GPT2Model(config))
        self.head = nn.Linear(32, 3)

    def __call__(self, obs: Tensor) -> Tensor:
        out = self.model(inputs_embeds=self.embed(obs))
        return torch.tanh(self.head(out.last_hidden_state[:, -1]))


@policy(
    "transformers",
    inputs={"input_ids": integers(3, 64, 2, 8), "attention_mask": PADDED_RIGHT},
    needs=_TRANSFORMERS,
)
def transformers_bert():
    """The pooled instruction, and the mean over those tokens that are no padding."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=16,
    )
    model = lively(BertModel(config))

    def step(input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        attention_mask = attention_mask.expand(2, -1)
        out = model(input_ids=input_ids, attention_mask=attention_mask)
        kept = attention_mask.unsqueeze(-1).float()
        mean = (out.last_hidden_state * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return {"pooled": out.pooler_output, "mean": F.normalize(mean, dim=-1)}

    return step


@policy("transformers", inputs={"input_ids": TOKENS}, needs=_TRANSFORMERS)
def transformers_distilbert():
    """Without a mask, with the attention written out, and in the order of a tuple."""
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(
        vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=16
    )
    config._attn_implementation = "eager"
    model = lively(DistilBertModel(config))

    def step(input_ids: Tensor) -> Tensor:
        hidden = model(input_ids, return_dict=False)[0]
        return hidden[:, 0]

    return step


@policy(
    "transformers",
    inputs={"input_ids": TOKENS, "attention_mask": PADDED_LEFT},
    needs=_TRANSFORMERS,
)
def transformers_llama():
    """Logits of the next token, the text padded on its left."""
    from transformers import LlamaConfig, LlamaForCausalLM

    model = lively(LlamaForCausalLM(LlamaConfig(**SMALL)))

    def step(input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        positions = (attention_mask.cumsum(-1) - 1).masked_fill(attention_mask == 0, 1)
        logits = model(
            input_ids=input_ids, attention_mask=attention_mask, position_ids=positions
        ).logits[:, -1]
        return {"logits": logits, "token": logits.argmax(-1)}

    return step


@policy("transformers", inputs={"input_ids": TOKENS}, needs=_TRANSFORMERS)
def transformers_llama_bfloat16():
    """In bfloat16 as on the robot's computer; the head over it computes in float32."""
    from transformers import LlamaConfig, LlamaModel

    model = lively(LlamaModel(LlamaConfig(**{**SMALL, "num_hidden_layers": 1}))).bfloat16()
    head = nn.Linear(32, 4)

    def step(input_ids: Tensor) -> Tensor:
        return head(model(input_ids=input_ids).last_hidden_state.float().mean(dim=1))

    return step


@policy(
    "transformers",
    inputs={"input_ids": integers(3, 64, 1, 12), "state": normal(1, 6)},
    needs=_TRANSFORMERS,
)
def transformers_mistral():
    """A sliding window; the robot's state is the last token."""
    from transformers import MistralConfig, MistralModel

    model = lively(MistralModel(MistralConfig(**SMALL, sliding_window=4)))
    state_proj, head = nn.Linear(6, 32), nn.Linear(32, 4)

    def step(input_ids: Tensor, state: Tensor) -> Tensor:
        embeds = model.get_input_embeddings()(input_ids)
        embeds = torch.cat([embeds, state_proj(state)[:, None]], dim=1)
        return head(model(inputs_embeds=embeds).last_hidden_state[:, -1])

    return step


@policy(
    "transformers",
    inputs={"input_ids": TOKENS, "attention_mask": PADDED_RIGHT},
    needs=_TRANSFORMERS,
)
def transformers_qwen2():
    """All hidden states, weighed."""
    from transformers import Qwen2Config, Qwen2Model

    model = lively(Qwen2Model(Qwen2Config(**SMALL)))
    shares = torch.softmax(torch.randn(3), 0)

    def step(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        out = model(input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=True)
        mixed = torch.einsum("l,lbsd->bsd", shares, torch.stack(out.hidden_states))
        last = attention_mask.sum(-1) - 1
        return mixed.gather(1, last.view(-1, 1, 1).expand(-1, 1, 32)).squeeze(1)

    return step


@policy("transformers", inputs={"input_ids": TOKENS}, needs=_TRANSFORMERS)
def transformers_mixtral():
    """Experts as the library chooses to compute them."""
    return _mixtral()


@policy("transformers", inputs={"input_ids": TOKENS}, needs=_TRANSFORMERS)
def transformers_mixtral_batched():
    """Experts computed with `batched_mm`, which has fixed shapes."""
    return _mixtral(experts_implementation="batched_mm")


def _mixtral(**options: str):
    from transformers import MixtralConfig, MixtralModel

    config = MixtralConfig(**SMALL, num_local_experts=4, num_experts_per_tok=2, **options)
    model = lively(MixtralModel(config))

    def step(input_ids: Tensor) -> Tensor:
        return model(input_ids=input_ids).last_hidden_state[:, -1]

    return step


@policy("transformers", inputs={"image": normal(1, 3, 32, 32)}, needs=_TRANSFORMERS)
def transformers_vit():
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(**_VISION, image_size=32, patch_size=8)
    model, head = lively(ViTModel(config)), nn.Linear(32, 5)

    def step(image: Tensor) -> Tensor:
        return head(model(pixel_values=image).pooler_output)

    return step


#: What all encoders of pictures have in common.
_VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}


@policy("transformers", inputs={"image": normal(1, 3, 64, 64)}, needs=_TRANSFORMERS)
def transformers_segformer():
    """Logits, resized to the picture."""
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 24, 32],
        num_attention_heads=[1, 2, 2, 4],
        decoder_hidden_size=24,
        num_labels=4,
    )
    model = lively(SegformerForSemanticSegmentation(config))

    def step(image: Tensor) -> dict[str, Tensor]:
        logits = model(pixel_values=image).logits
        logits = F.interpolate(logits, size=(64, 64), mode="bilinear", align_corners=False)
        return {"logits": logits, "shares": logits.softmax(1).mean((2, 3))}

    return step


@policy("transformers", inputs={"image": uniform(0, 1, 1, 3, 32, 32)}, needs=_TRANSFORMERS)
def transformers_clip():
    """Likeness of a picture to texts that were embedded before, in CLIP's scale."""
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    config = CLIPVisionConfig(**_VISION, image_size=32, patch_size=8, projection_dim=16)
    model = lively(CLIPVisionModelWithProjection(config))
    texts = F.normalize(torch.randn(5, 16), dim=-1)
    mean = torch.tensor([0.481, 0.458, 0.408]).view(3, 1, 1)
    std = torch.tensor([0.269, 0.261, 0.276]).view(3, 1, 1)

    def step(image: Tensor) -> tuple[Tensor, Tensor]:
        embeds = model(pixel_values=(image - mean) / std).image_embeds
        embeds = embeds / embeds.norm(p=2, dim=-1, keepdim=True)
        return (10.0 * embeds @ texts.T).softmax(dim=-1), embeds

    return step


@policy("transformers", inputs={"image": uniform(-1, 1, 2, 3, 32, 32)}, needs=_TRANSFORMERS)
def transformers_siglip():
    """Two cameras as a batch; pooled by attention, and all patches."""
    from transformers import SiglipVisionConfig, SiglipVisionModel

    config = SiglipVisionConfig(**_VISION, image_size=32, patch_size=8)
    model = lively(SiglipVisionModel(config))

    def step(image: Tensor) -> dict[str, Tensor]:
        out = model(pixel_values=image)
        return {"pooled": out.pooler_output.flatten(), "patches": out.last_hidden_state}

    return step


@policy("transformers", inputs={"image": normal(1, 3, 42, 28)}, needs=_TRANSFORMERS)
def transformers_dinov2():
    """Pictures of another size than it was trained with: its positions are interpolated."""
    from transformers import Dinov2Config, Dinov2Model

    config = Dinov2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        mlp_ratio=2,
        image_size=56,
        patch_size=14,
    )
    model = lively(Dinov2Model(config))

    def step(image: Tensor) -> tuple[Tensor, Tensor]:
        hidden = model(pixel_values=image).last_hidden_state
        return hidden[:, 0], hidden[:, 1:].view(1, 3, 2, 32).permute(0, 3, 1, 2)

    return step


@policy("transformers", inputs={"features": normal(1, 16, 40)}, needs=_TRANSFORMERS)
def transformers_whisper():
    """The encoder of speech, over a short window."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(
        vocab_size=64,
        num_mel_bins=16,
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        max_source_positions=20,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    encoder = lively(WhisperEncoder(config))

    def step(features: Tensor) -> Tensor:
        return encoder(features).last_hidden_state.mean(dim=1)

    return step


@policy(
    "transformers",
    inputs={"state": normal(1, 5), "reward": uniform(0, 1, 1, 1)},
    fresh={"reward": uniform(0, 1, 1, 1)},
    needs=_TRANSFORMERS,
    passes=6,
    name="transformers_decision",
)
class Decision:
    """A decision transformer; the last four steps are rolled, empty ones masked on the left."""

    def __init__(self, length: int = 4) -> None:
        from transformers import DecisionTransformerConfig, DecisionTransformerModel

        config = DecisionTransformerConfig(
            state_dim=5,
            act_dim=3,
            hidden_size=24,
            n_layer=2,
            n_head=2,
            n_positions=32,
            max_ep_len=100,
            use_cache=False,
        )
        self.model = lively(DecisionTransformerModel(config))
        self.states, self.actions = torch.zeros(1, length, 5), torch.zeros(1, length, 3)
        self.returns = torch.zeros(1, length, 1)
        self.timesteps = torch.zeros(1, length, dtype=torch.long)
        self.mask = torch.zeros(1, length, dtype=torch.long)
        self.target, self.t = torch.full((1, 1), 5.0), torch.zeros(1, 1, dtype=torch.long)

    def __call__(self, state: Tensor, reward: Tensor) -> Tensor:
        self.target = self.target - 0.1 * reward
        self.states = torch.cat([self.states[:, 1:], state[:, None]], dim=1)
        self.returns = torch.cat([self.returns[:, 1:], self.target[:, None]], dim=1)
        self.timesteps = torch.cat([self.timesteps[:, 1:], self.t], dim=1)
        self.mask = torch.cat([self.mask[:, 1:], torch.ones_like(self.t)], dim=1)
        actions = torch.cat([self.actions[:, 1:], torch.zeros(1, 1, 3)], dim=1)
        _, predicted, _ = self.model(
            states=self.states,
            actions=actions,
            returns_to_go=self.returns,
            timesteps=self.timesteps,
            attention_mask=self.mask,
            return_dict=False,
        )
        action = predicted[:, -1]
        actions[:, -1] = action
        self.actions, self.t = actions, self.t + 1
        return action


@policy(
    "transformers",
    inputs={"token": integers(3, 64, 1, 1)},
    needs=_TRANSFORMERS,
    passes=6,
    name="transformers_static_cache",
)
class StaticCacheDecoder:
    """Llama with the library's `StaticCache`, a token in every tick."""

    def __init__(self) -> None:
        from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

        config = LlamaConfig(**{**SMALL, "use_cache": True})
        self.model = lively(LlamaForCausalLM(config))
        self.cache = StaticCache(config=config, max_cache_len=56)
        self.cache.early_initialization(1, 2, 8, torch.float32, torch.device("cpu"))

    def __call__(self, token: Tensor) -> Tensor:
        return self.model(input_ids=token, past_key_values=self.cache).logits[:, -1]


@policy(
    "transformers",
    inputs={"obs": normal(1, 5)},
    passes=6,
    style="module",
    name="transformers_kv_capacity",
)
class CapacityCache(nn.Module):
    """An own cache of fixed capacity, written at its length, the rest masked."""

    def __init__(self, dim: int = 24, heads: int = 3, capacity: int = 64) -> None:
        super().__init__()
        self.heads, self.capacity = heads, capacity
        self.embed, self.qkv = nn.Linear(5, dim), nn.Linear(dim, 3 * dim)
        self.place = nn.Embedding(capacity, dim)
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4))
        shape = (1, heads, capacity, dim // heads)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))
        self.register_buffer("length", torch.zeros(1, dtype=torch.long))
        lively(self)

    def forward(self, obs: Tensor) -> Tensor:
        x = self.embed(obs) + self.place(self.length)
        q, k, v = (
            part.view(1, 1, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)
        )
        self.keys[:, :, self.length] = k
        self.values[:, :, self.length] = v
        seen = torch.arange(self.capacity) <= self.length
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen[None])
        self.length += 1
        return self.out(x + y.transpose(1, 2).flatten(1))


@policy(
    "transformers",
    inputs={"obs": normal(1, 5)},
    passes=6,
    name="transformers_kv_rolling",
)
class RollingCache:
    """Own caches of the last steps, a pair for each layer, moved on in every tick."""

    def __init__(self, dim: int = 24, heads: int = 3, window: int = 5, layers: int = 2) -> None:
        self.heads = heads
        self.embed, self.head = nn.Linear(5, dim), nn.Linear(dim, 4)
        self.qkv = [nn.Linear(dim, 3 * dim) for _ in range(layers)]
        self.mlp = [
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 48), nn.GELU(), nn.Linear(48, dim))
            for _ in range(layers)
        ]
        empty = torch.zeros(1, heads, window, dim // heads)
        self.past = [(empty.clone(), empty.clone()) for _ in range(layers)]
        self.seen = torch.zeros(window, dtype=torch.bool)

    def __call__(self, obs: Tensor) -> Tensor:
        x = self.embed(obs)
        self.seen = torch.cat([self.seen[1:], torch.ones(1, dtype=torch.bool)])
        present = []
        for qkv, mlp, (keys, values) in zip(self.qkv, self.mlp, self.past, strict=True):
            q, k, v = qkv(x).view(1, 3, self.heads, 1, -1).unbind(1)
            keys = torch.cat([keys[:, :, 1:], k], dim=2)
            values = torch.cat([values[:, :, 1:], v], dim=2)
            scores = q @ keys.transpose(-1, -2) / keys.shape[-1] ** 0.5
            shares = scores.masked_fill(~self.seen, float("-inf")).softmax(-1)
            x = x + (shares @ values).flatten(1)
            x = x + mlp(x)
            present.append((keys, values))
        self.past = present
        return self.head(x)
