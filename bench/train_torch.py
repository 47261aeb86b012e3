#!/usr/bin/env python3
"""train_torch.py - the step of bench/train.c by PyTorch on the CPU.

    bench/train_torch.py 10m|100m THREADS STEPS [bf16] [lean]

bf16: matrix products under autocast. lean: foreach is off in the optimizer. Peak memory is that of the process,
less what it had before the first step and without gradients and state of the optimizer.
"""
import resource
import sys
import time

import torch
import torch.nn.functional as F

SHAPES = {"10m": (6, 320, 5, 864, 8192, 8, 256), "100m": (12, 768, 12, 2048, 16384, 4, 512)}


class Block(torch.nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.RMSNorm(width, eps=1e-5), torch.nn.RMSNorm(width, eps=1e-5)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = (torch.nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin):
        rows, length, width = x.shape
        h = self.norm1(x)
        q, k, v = (m(h).view(rows, length, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))

        def rotate(t):
            a, b = t.chunk(2, -1)
            return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(rows, length, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(torch.nn.Module):
    def __init__(self, layers, width, heads, inner, vocab, length):
        super().__init__()
        self.table = torch.nn.Embedding(vocab, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.norm = torch.nn.RMSNorm(width, eps=1e-5)
        self.head = torch.nn.Linear(width, vocab, bias=False)
        half = width // heads // 2
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)[None]
        self.cos, self.sin = angle.cos(), angle.sin()

    def forward(self, tokens):
        x = self.table(tokens)
        for b in self.blocks:
            x = b(x, self.cos, self.sin)
        return self.head(self.norm(x))


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main():
    layers, width, heads, inner, vocab, rows, length = SHAPES[sys.argv[1]]
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    model = Llama(layers, width, heads, inner, vocab, length)
    values = sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(vocab, (rows, length + 1))
    before, took = peak(), []
    for i in range(int(sys.argv[3]) + 1):
        if i == 1:
            cpu = time.process_time()
        start = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled="bf16" in sys.argv):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.float().view(-1, vocab), tokens[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        took.append(time.perf_counter() - start)
    cpu = (time.process_time() - cpu) / int(sys.argv[3])
    took = sorted(took[1:])
    work = peak() - before - values * 12 // 2**20
    print(f"torch {sys.argv[1]}: {values / 1e6:.1f} M values; a step of {rows * length} tokens: median {took[len(took) // 2]:.3f} s, "
          f"best {took[0]:.3f} s, {cpu:.3f} s of CPU, {rows * length / took[len(took) // 2]:.0f} tokens/s; MB beyond weights, gradients, state: {work}")


if __name__ == "__main__":
    sys.exit(main())
