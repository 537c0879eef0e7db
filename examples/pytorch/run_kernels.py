#!/usr/bin/env python3
"""Runs kernels of a folder on PyTorch tensors: checks them with torch, and times them.

    run_kernels.py FOLDER [NAME ...] [--no-time] [--chain plain|dependent] [--library] [--repeats N]

Each NAME.json (recipe, buffers, a reference in torch) has its NAME.cubin beside it; both are written by
bench/write_kernels. Only libcuda is needed beside torch: the recipe says all that a launch needs.
"""
import argparse
import ctypes
import json
import pathlib
import sys
import time

import torch

cuda = ctypes.CDLL("libcuda.so.1")
TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
         "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "i8": torch.int8, "i32": torch.int32}
# CUtensorMapDataType (cuda.h)
MAP_TYPES = {"e4m3": 0, "e5m2": 0, "i8": 0, "i32": 3, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
MAP_BYTES = {0: 1, 3: 4, 6: 2, 7: 4, 8: 8, 9: 2}
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}
ROUNDOFF = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8, "e4m3": 2.0**-4}


def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    if status != 0:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{name}: {status} {text.value.decode() if text.value else ''}")


class Attribute(ctypes.Structure):  # CUlaunchAttribute: an id, and a value of 64 bytes
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):  # CUlaunchConfig
    _fields_ = [(name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")]
    _fields_ += [("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)),
                 ("count", ctypes.c_uint)]


def evaluate(stride, sizes):
    total = 0
    for term in stride:
        product = term["coefficient"]
        for index in term["sizes"]:
            product *= sizes[index]
        total += product
    return total


def tensor_map(recipe, address, sizes):
    kind = MAP_TYPES[recipe["type"]]
    rank = len(recipe["dims"])
    extents = [evaluate(dim["extent"], sizes) for dim in recipe["dims"]]
    strides = [evaluate(dim["stride"], sizes) * MAP_BYTES[kind] for dim in recipe["dims"]]
    storage = ctypes.create_string_buffer(128 + 64)
    at = (ctypes.addressof(storage) + 63) // 64 * 64
    call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), kind, rank, ctypes.c_void_p(address),
         (ctypes.c_uint64 * rank)(*extents), (ctypes.c_uint64 * max(1, rank - 1))(*strides[1:]),
         (ctypes.c_uint32 * rank)(*recipe["box"]), (ctypes.c_uint32 * rank)(*[1] * rank), 0,
         SWIZZLES[recipe["swizzle_bytes"]], PROMOTIONS[recipe["l2_promotion_bytes"]], 0)
    return storage, at


class Kernel:
    """One kernel on one set of buffers: launch(stream) calls it."""

    def __init__(self, case, functions, tensors, dependent):
        recipe = case["recipe"]
        self.keep = [tensors]
        self.launches = []
        workspace = None
        if recipe["workspace"]["bytes"]:
            workspace = torch.zeros(recipe["workspace"]["bytes"], dtype=torch.uint8, device="cuda")
            self.keep.append(workspace)
        maps = []
        for m in recipe["tensor_maps"]:
            of = workspace if m["buffer"] < 0 else tensors[m["buffer"]]
            maps.append(tensor_map(m, of.data_ptr() + m["offset_bytes"], case["sizes"]))
        self.keep.append(maps)
        for launch in recipe["launches"]:
            pointers = []
            for argument in launch["arguments"]:
                if argument["kind"] == "tensor_map":
                    pointers.append(maps[argument["number"]][1])
                    continue
                value = {"buffer": lambda: tensors[argument["number"]].data_ptr(),
                         "size": lambda: case["sizes"][argument["number"]],
                         "integer": lambda: argument["value"],
                         "workspace": lambda: workspace.data_ptr() + argument["value"]}[argument["kind"]]()
                slot = ctypes.c_uint64(value)
                self.keep.append(slot)
                pointers.append(ctypes.addressof(slot))
            attributes = (Attribute * 2)()
            count = 0
            if launch["cluster"] > 1:  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
                attributes[count].id = 4
                attributes[count].value[0:3] = [launch["cluster"], 1, 1]
                count += 1
            if dependent and launch["dependent_launch"]:  # ..._PROGRAMMATIC_STREAM_SERIALIZATION
                attributes[count].id = 6
                attributes[count].value[0] = 1
                count += 1
            config = LaunchConfig(*launch["grid"], launch["block"], 1, 1, launch["shared_memory_bytes"],
                                  None, attributes, count)
            self.launches.append((config, functions[launch["entry"]],
                                  (ctypes.c_void_p * len(pointers))(*pointers)))

    def launch(self, stream):
        for config, function, parameters in self.launches:
            config.stream = stream
            call("cuLaunchKernelEx", ctypes.byref(config), function, parameters, None)


def load(folder, case):
    image = (folder / (case["name"] + ".cubin")).read_bytes()
    module = ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), image)
    functions = {}
    for launch in case["recipe"]["launches"]:
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, launch["entry"].encode())
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, 8, launch["shared_memory_bytes"])
        functions[launch["entry"]] = function
    return functions


def make(buffer, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    storage = torch.empty(buffer["elements"], dtype=torch.float32, device="cuda")
    if buffer["output"]:
        storage.fill_(float("nan"))
    else:
        storage.normal_(generator=generator)
    return storage.to(TYPES[buffer["type"]])


def view(buffer, storage):
    return torch.as_strided(storage, buffer["shape"], buffer["strides"])


def check(case, functions, dependent):
    """The largest error of any element, in units of what rounding the output alone may cost."""
    buffers = case["buffers"]
    tensors = [make(buffer, i) for i, buffer in enumerate(buffers)]
    kernel = Kernel(case, functions, tensors, dependent)
    for _ in range(2):
        kernel.launch(torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    names = {b["name"]: view(b, t).double() for b, t in zip(buffers, tensors) if not b["output"]}
    expected = eval(case["reference"], {"torch": torch, **names})
    output = next(view(b, t).double() for b, t in zip(buffers, tensors) if b["output"])
    kind = next(b["type"] for b in buffers if b["output"])
    bad = torch.isnan(output).sum().item()
    scale = expected.pow(2).mean().sqrt().item()
    # Sums in f32, which tensor cores truncate step by step: an absolute part beside that of the
    # rounding. 8-bit products are kept to 14 bits or so.
    terms = case["operations"] / 2 / max(1, expected.numel())
    narrow = any(b["type"] in ("e4m3", "e5m2") for b in buffers)
    allowed = ROUNDOFF[kind] * expected.abs() + (1e-3 if narrow else 2e-5 + 2e-9 * terms) * scale
    error = ((output - expected).abs() / allowed).nan_to_num(float("inf"))
    return error.max().item(), bad, where(error > 1.5)


def where(wrong):
    """Says which part of the output is wrong: how much, and the rows and columns of its last two dimensions."""
    if not wrong.any():
        return ""
    text = f"{wrong.float().mean().item():.4f} of all"
    for dim, name in ((-1, "columns"), (-2, "rows")):
        if wrong.dim() + dim < 0:
            continue
        others = [d for d in range(wrong.dim()) if d != wrong.dim() + dim]
        along = wrong.amax(dim=others) if others else wrong
        at = along.nonzero().flatten().tolist()
        runs = []
        for i in at:
            if runs and runs[-1][1] == i - 1:
                runs[-1][1] = i
            else:
                runs.append([i, i])
        text += f", {name} " + " ".join(f"{a}-{b}" for a, b in runs[:6]) + (" …" if len(runs) > 6 else "")
    return text


def graph_of(run, calls):
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            run()
    return graph


def time_graph(graph, calls, idle_ms, repeats):
    times = []
    graph.replay()
    for _ in range(repeats):
        torch.cuda.synchronize()
        time.sleep(idle_ms * 1e-3)  # large products run into the power limit, which recovers
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls * 1e3)
    return sorted(times)[len(times) // 2]


def rotated(case, functions, dependent):
    """Sets of buffers that together leave the caches, called in turn."""
    total = sum(b["elements"] * torch.empty(0, dtype=TYPES[b["type"]]).element_size()
                for b in case["buffers"])
    sets = max(2, min(64, 160_000_000 // total + 1))
    kernels = []
    for s in range(sets):
        tensors = [make(buffer, 100 * s + i) for i, buffer in enumerate(case["buffers"])]
        kernels.append((Kernel(case, functions, tensors, dependent), tensors))
    return kernels


def measure(case, functions, dependent, library, repeats):
    kernels = rotated(case, functions, dependent)
    turn = [0]

    def ours():
        kernels[turn[0] % len(kernels)][0].launch(torch.cuda.current_stream().cuda_stream)
        turn[0] += 1

    estimate = max(3e-6, case["operations"] / 700e12)
    calls = int(max(4, min(200, 4e-3 / estimate)))
    idle_ms = 200 if estimate > 20e-6 else 2
    graph = graph_of(ours, calls)
    text = f"{time_graph(graph, calls, idle_ms, repeats):9.2f} us"
    if library:
        views = [{b["name"]: view(b, t) for b, t in zip(case["buffers"], tensors)}
                 for _, tensors in kernels]

        def theirs():
            names = views[turn[0] % len(views)]
            turn[0] += 1
            return eval(case["reference"], {"torch": torch, **names})

        text += f"  torch {time_graph(graph_of(theirs, calls), calls, idle_ms, repeats):9.2f} us"
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--library", action="store_true", help="time the reference in torch too")
    parser.add_argument("--chain", choices=["plain", "dependent"], default="plain")
    parser.add_argument("--repeats", type=int, default=7, help="bursts; the median is printed")
    options = parser.parse_args()
    torch.cuda.init()
    torch.empty(1, device="cuda")
    dependent = options.chain == "dependent"
    failed = 0
    for path in sorted(options.folder.glob("*.json")):
        if options.names and path.stem not in options.names:
            continue
        case = json.loads(path.read_text())
        try:
            functions = load(options.folder, case)
            error, bad, place = check(case, functions, dependent)
            right = error <= 1.5 and bad == 0
            failed += not right
            line = f"{'ok   ' if right else 'WRONG'} {case['name']:28s} error {error:8.3f} nan {bad:8d} {place}"
            if right and not options.no_time:
                line += "  " + measure(case, functions, dependent, options.library, options.repeats)
            print(line, " ", case["schedule"], flush=True)
        except Exception as error:  # a sticky error of the device ends all further calls
            print("FAIL ", case["name"], error, case["schedule"], flush=True)
            return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
