#!/usr/bin/env python3
"""Calls the functions of a pack for CUDA on PyTorch tensors, checks them with torch and times both.

    tilewright build --workloads examples/pack_cuda/kernels.tw --target cuda --db tuning.db --out gpu_kernels
    examples/pytorch/run_pack.py gpu_kernels

The pack's launcher is compiled into a shared library with `cc` ($CC) and the cuda.h of $CUDA_HOME. It runs on torch's
current stream, inside torch.cuda.graph too.
"""
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

from run_kernels import TYPES, graph_of, time_graph


class Context(ctypes.Structure):  # tw_cuda_context
    _fields_ = [("stream", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t)]


class Pack:
    """A pack's functions by name: pack.decode(x, w) returns the output.

    Arguments are tensors in the order of the C function, with the types, shapes and strides that the manifest says;
    ranged sizes are taken from their shapes.
    """

    def __init__(self, directory):
        directory = pathlib.Path(directory)
        manifest = json.loads((directory / "manifest.json").read_text())
        self._library = ctypes.CDLL(build(directory, manifest["name"]))
        self.functions = {w["name"]: Function(self._library, w) for w in manifest["workloads"]}

    def __getattr__(self, name):
        return self.functions[name]


def build(directory, name):
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    library = pathlib.Path(tempfile.mkdtemp()) / f"lib{name}.so"
    subprocess.run([os.environ.get("CC", "cc"), "-std=c11", "-O2", "-shared", "-fPIC", "-o", library,
                    directory / "launcher.c", "-isystem", f"{home}/include", "-ldl", "-pthread"], check=True)
    return str(library)


class Function:
    def __init__(self, library, workload):
        self.name = workload["name"]
        self.tensors = [a for a in workload["arguments"] if a["kind"] != "size"]
        self.sizes = [a["name"] for a in workload["arguments"] if a["kind"] == "size"]
        self.fixed = {s["name"]: s["low"] for s in workload["sizes"] if s["low"] == s["high"]}
        self._call = getattr(library, self.name)
        self._call.argtypes = ([ctypes.c_void_p] * len(self.tensors) + [ctypes.c_int64] * len(self.sizes) +
                               [ctypes.POINTER(Context)])
        bytes_of = getattr(library, self.name + "_workspace_bytes")
        bytes_of.restype = ctypes.c_size_t
        self.workspace_bytes = bytes_of()

    def __call__(self, *inputs, out=None):
        sizes = dict(self.fixed)
        wanted = [a for a in self.tensors if a["kind"] == "input"]
        if len(inputs) != len(wanted):
            raise TypeError(f"{self.name} takes {', '.join(a['name'] for a in wanted)}")
        for argument, tensor in zip(wanted, inputs):
            self._check(argument, tensor, sizes)
        outputs = [a for a in self.tensors if a["kind"] == "output"]
        if out is None:
            out = [torch.empty(self._shape(a, sizes), dtype=TYPES[a["type"]], device="cuda") for a in outputs]
        for argument, tensor in zip(outputs, out):
            self._check(argument, tensor, sizes)
        # torch keeps memory that a stream may still use from other streams, so a new workspace for each call costs little.
        workspace = torch.empty(self.workspace_bytes, dtype=torch.uint8, device="cuda")
        context = Context(torch.cuda.current_stream().cuda_stream, workspace.data_ptr() or None, self.workspace_bytes)
        given = iter(inputs), iter(out)
        pointers = [next(given[a["kind"] == "output"]).data_ptr() for a in self.tensors]
        status = self._call(*pointers, *[sizes[s] for s in self.sizes], ctypes.byref(context))
        if status != 0:
            raise RuntimeError(f"{self.name}: status {status}, see tw_cuda_status_text in the pack's header")
        return out[0] if len(out) == 1 else out

    def _shape(self, argument, sizes):
        return [sizes[d] if isinstance(d, str) else d for d in argument["shape"]]

    def _check(self, argument, tensor, sizes):
        name = f"{self.name}: {argument['name']}"
        if tensor.dtype != TYPES[argument["type"]] or not tensor.is_cuda or tensor.dim() != len(argument["shape"]):
            raise TypeError(f"{name} must be {argument['type']} {argument['shape']} on a GPU")
        for extent, dimension in zip(tensor.shape, argument["shape"]):
            if isinstance(dimension, str):
                sizes.setdefault(dimension, extent)
        if list(tensor.shape) != self._shape(argument, sizes):
            raise TypeError(f"{name} is {list(tensor.shape)}, must be {self._shape(argument, sizes)}")
        if list(tensor.stride()) != argument.get("strides", list(torch.empty(tensor.shape, device="meta").stride())):
            raise TypeError(f"{name} has the strides {list(tensor.stride())}")


def microseconds(run, calls=20):
    return time_graph(graph_of(run, calls), calls, idle_ms=50, repeats=5)


def main():
    if len(sys.argv) != 2:
        sys.exit("run_pack.py PACK")
    pack = Pack(sys.argv[1])
    torch.manual_seed(1)
    gelu, linear = torch.nn.functional.gelu, torch.nn.functional.linear

    def random(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda").to(dtype)

    # What each function of examples/pack_cuda/kernels.tw is in torch.
    cases = [("square", torch.matmul, [random(4096, 4096), random(4096, 4096)]),
             ("decode", linear, [random(16, 4096), random(4096, 4096)]),
             ("odd", torch.matmul, [random(1021, 1033), random(1033, 1031)]),
             ("single", torch.matmul, [random(512, 512, dtype=torch.float32), random(512, 512, dtype=torch.float32)]),
             ("mlp", lambda x, w, b: gelu(linear(x, w, b)), [random(777, 1024), random(4096, 1024), random(4096)])]
    failed = 0
    for name, in_torch, inputs in cases:
        function = pack.functions[name]
        got = function(*inputs).double()
        expected = in_torch(*[tensor.double() for tensor in inputs])
        # Half a unit in the last place of the output, and what f32 sums may lose.
        unit = 2.0**-8 if inputs[0].dtype == torch.bfloat16 else 2.0**-24
        allowed = unit * expected.abs() + 1e-4 * expected.pow(2).mean().sqrt()
        error = ((got - expected).abs() / allowed).nan_to_num(float("inf")).max().item()
        failed += error > 1
        print(f"{name:8s} {'ok   ' if error <= 1 else 'WRONG'} error {error:6.3f} of what is allowed  "
              f"{microseconds(lambda: function(*inputs)):9.2f} us  torch {microseconds(lambda: in_torch(*inputs)):9.2f} us",
              flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
