#!/usr/bin/env python3
"""Times gelu(linear) of a workload file's lines by torch.compile and by torch's unfused calls.

    time_fused.py FILE.tw

A line has m=, n= and k= among its words, and a type that is bf16 or f16. Random normal inputs, rotated through more than
160 MB, calls replayed from a graph, 200 ms idle before each burst, medians of 11: the protocol of the finals, but not
paired with them. Prints a Markdown table.
"""
import re
import sys
import time

import torch
import torch.nn.functional as F


def time_us(calls):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
        stream.synchronize()
        start, end = torch.cuda.Event(True), torch.cuda.Event(True)
        start.record()
        for call in calls:
            call()
        end.record()
        end.synchronize()
        each = start.elapsed_time(end) / len(calls)
        count = max(len(calls), min(400, int(10 / (each + 1e-6))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(count):
                calls[i % len(calls)]()
        graph.replay()
        times = []
        for _ in range(11):
            torch.cuda.synchronize()
            time.sleep(0.2)
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1000 / count)
    return sorted(times)[5]


def main():
    print("| layer | torch.compile us (gelu by erf) | torch.compile us (tanh form) | torch unfused us |")
    print("|---|---|---|---|", flush=True)
    for line in open(sys.argv[1]):
        sizes = {name: int(value) for name, value in re.findall(r"\b([mnk])=(\d+)", line)}
        if len(sizes) != 3:
            continue
        kind = torch.float16 if line.split()[-1].startswith("f16") else torch.bfloat16
        m, n, k = sizes["m"], sizes["n"], sizes["k"]
        sets = max(1, min(32, (160 << 20) // (2 * (m * k + n * k + m * n)) + 1))
        random = lambda *shape: torch.randn(*shape, device="cuda", dtype=kind)
        inputs = [(random(m, k), random(n, k), random(n)) for _ in range(sets)]
        cells = []
        for form, fuse in (("none", True), ("tanh", True), ("none", False)):
            layer = lambda x, w, b: F.gelu(F.linear(x, w, b), approximate=form)
            if fuse:
                torch._dynamo.reset()
                layer = torch.compile(layer, mode="max-autotune-no-cudagraphs")
            try:
                with torch.no_grad():
                    for one in inputs:
                        layer(*one)
                    cells.append(f"{time_us([lambda one=one: layer(*one) for one in inputs]):.4g}")
            except Exception as error:  # a rival that does not run is told, not hidden
                cells.append(str(error).splitlines()[0][:60])
        print(f"| {line.split()[0]} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
