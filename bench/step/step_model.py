"""The model of bench_step in eager PyTorch, as one writes it: a step on request, for compare.py.

step_model.py fp32|bf16. Reads `step` or `quit` from stdin, a line each, and answers with a line of JSON. bf16:
weights and activations in bf16, norms, softmax and loss in fp32, fp32 master weights and AdamW states.
"""
import ctypes
import dataclasses
import json
import math
import sys
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn

EPSILON = 1e-5
MASK64 = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    ffn: int
    heads: int
    vocabulary: int
    length: int
    batch: int

    @property
    def head_size(self):
        return self.hidden // self.heads


STEP_SHAPE = Shape(layers=8, hidden=512, ffn=1408, heads=8, vocabulary=8192, length=512, batch=2)


def hot_values(name, shape):
    """Start weights from the name and the element's index: the generator of `--start hot`."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK64
    count = math.prod(shape)
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(key) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        z = z ^ (z >> numpy.uint64(31))
    u = (z >> numpy.uint64(11)).astype(numpy.float64) * 2.0**-52 - 1.0
    if len(shape) == 1:
        values = 1.0 + 0.1 * u
    elif name == "model.embed_tokens.weight":
        values = math.sqrt(3.0) * 0.3 * u
    else:
        values = math.sqrt(3.0) * 1.7 / math.sqrt(shape[1]) * u
    return torch.from_numpy(values.reshape(shape))


class RmsNorm(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape.hidden))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
        return wide.to(x.dtype) * self.weight


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.q_proj, self.k_proj = linear(shape.hidden, shape.hidden), linear(shape.hidden, shape.hidden)
        self.v_proj, self.o_proj = linear(shape.hidden, shape.hidden), linear(shape.hidden, shape.hidden)

    def forward(self, x, cos, sin, mask):
        shape = self.shape

        def heads(projection):
            return projection(x).view(shape.batch, shape.length, shape.heads, shape.head_size).transpose(1, 2)

        q, k, v = rotate(heads(self.q_proj), cos, sin), rotate(heads(self.k_proj), cos, sin), heads(self.v_proj)
        scores = torch.matmul(q, k.transpose(2, 3)) * (1.0 / math.sqrt(shape.head_size)) + mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(x.dtype)
        mixed = torch.matmul(weights, v).transpose(1, 2).reshape(shape.batch, shape.length, shape.hidden)
        return self.o_proj(mixed)


class FeedForward(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate_proj, self.up_proj = linear(shape.hidden, shape.ffn), linear(shape.hidden, shape.ffn)
        self.down_proj = linear(shape.ffn, shape.hidden)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RmsNorm(shape), RmsNorm(shape)
        self.self_attn, self.mlp = Attention(shape), FeedForward(shape)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = RmsNorm(shape)


class Llama(nn.Module):
    def __init__(self, shape, dtype):
        super().__init__()
        self.model = Body(shape)
        self.lm_head = linear(shape.hidden, shape.vocabulary)
        self.to(dtype)
        size = shape.head_size
        frequencies = 10000.0 ** (-2.0 * torch.arange(size // 2, dtype=torch.float64) / size)
        angles = torch.arange(shape.length, dtype=torch.float64).unsqueeze(1) * frequencies
        angles = torch.cat((angles, angles), dim=-1)
        self.cos, self.sin = angles.cos().to(dtype), angles.sin().to(dtype)
        self.mask = torch.full((shape.length, shape.length), -math.inf).triu(1).to(dtype)

    def forward(self, tokens, labels):
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, self.cos, self.sin, self.mask)
        logits = self.lm_head(self.model.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


class Trainer:
    """wrap: what makes the model compute with other ranks."""

    def __init__(self, shape, dtype, wrap=lambda model: model):
        llama = Llama(shape, dtype)
        self.model = wrap(llama)
        self.parameters = list(llama.parameters())
        with torch.no_grad():
            for name, parameter in llama.named_parameters():
                parameter.copy_(hot_values(name, tuple(parameter.shape)))
        self.masters = self.parameters
        if dtype != torch.float32:
            self.masters = [p.detach().float().requires_grad_() for p in self.parameters]
            for master in self.masters:
                master.grad = torch.zeros_like(master)
        groups = [{"params": [p for p in self.masters if p.dim() > 1], "weight_decay": 0.1},
                  {"params": [p for p in self.masters if p.dim() == 1], "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, foreach=True)

    def step(self, tokens, labels):
        for parameter in self.parameters:
            parameter.grad = None
        loss = self.model(tokens, labels)
        loss.backward()
        if self.masters is not self.parameters:
            for master, parameter in zip(self.masters, self.parameters):
                master.grad.copy_(parameter.grad)
        norm = torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        if self.masters is not self.parameters:
            with torch.no_grad():
                for master, parameter in zip(self.masters, self.parameters):
                    parameter.copy_(master)
        return loss.item(), norm.item()


def batch(shape, samples):
    sequences = []
    for sample in samples:
        x = (sample % 1000 + 1) * 1_000_003 + torch.arange(shape.length + 1, dtype=torch.int64) * 7919
        sequences.append((x * x >> 8) % shape.vocabulary)
    whole = torch.stack(sequences)
    return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()


def blas_core():
    library = ctypes.CDLL("libopenblas.so.0")
    library.openblas_get_corename.restype = ctypes.c_char_p
    return library.openblas_get_corename().decode()


def serve(trainer, shape, rank=0, ranks=1, before_step=lambda: None):
    """Answers to `step` with the time, the loss of this rank's samples and the norm of the gradient."""
    print(json.dumps({"torch": torch.__version__, "blas_core": blas_core()}), flush=True)
    first = rank * shape.batch
    for line in sys.stdin:
        if line.strip() != "step":
            break
        tokens, labels = batch(shape, range(first, first + shape.batch))
        before_step()
        cpu, begin = time.process_time(), time.perf_counter()
        loss, norm = trainer.step(tokens, labels)
        seconds = time.perf_counter() - begin
        print(json.dumps({"seconds": seconds, "cpu_seconds": time.process_time() - cpu, "loss": loss,
                          "gradient_norm": norm}), flush=True)
        first += ranks * shape.batch


def main():
    torch.set_num_threads(1)
    serve(Trainer(STEP_SHAPE, {"fp32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]), STEP_SHAPE)


if __name__ == "__main__":
    main()
