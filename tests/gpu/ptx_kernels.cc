#include "tests/gpu/ptx_kernels.h"

#include "absl/strings/str_cat.h"

namespace tilewright {
namespace {

constexpr const char* kHead = ".version 7.0\n.target sm_80\n.address_size 64\n";

Kernel OneLaunch(std::string text, std::vector<Argument> arguments, int blocks, int64_t shared) {
  Kernel kernel;
  kernel.objects.push_back({"ptx-sm_80", std::move(text)});
  Launch launch;
  launch.entry = "entry";
  launch.arguments = std::move(arguments);
  launch.grid = {blocks, 1, 1};
  launch.block = 32;
  launch.shared_memory_bytes = shared;
  kernel.launches.push_back(std::move(launch));
  return kernel;
}

}  // namespace

std::vector<WrongKernel> WrongKernels() {
  using Kind = FailureKind;
  return {
      {"writes nothing", "", 0, {Kind::kWrongOutput}},
      {"writes to address 16",
       "mov.u64 %rd4, 16;\nst.global.u32 [%rd4], 0;\n",
       0,
       {Kind::kOutOfBounds}},
      {"writes just before C", "st.global.u32 [%rd3+-4], 0;\n", 0, {Kind::kOutOfBounds}},
      {"writes to A", "st.global.u32 [%rd1], 0;\n", 0, {Kind::kInputModified}},
      {"writes to an odd address", "st.global.u32 [%rd3+1], 0;\n", 0, {Kind::kCrashed}},
      {"traps", "trap;\n", 0, {Kind::kCrashed}},
      {"never ends", "loop:\nbra loop;\n", 0, {Kind::kRunTimeout}},
      {"wants more shared memory than there is", "", 1 << 20, {Kind::kLaunchFailed}},
  };
}

Kernel KernelOf(const WrongKernel& wrong) {
  std::vector<Argument> arguments;
  for (int b = 0; b < 3; ++b) arguments.push_back({Argument::Kind::kBuffer, b, 0});
  return OneLaunch(
      absl::StrCat(kHead,
                   ".visible .entry entry(.param .u64 a, .param .u64 b, .param .u64 c)\n"
                   "{\n.reg .b64 %rd<8>;\n"
                   "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
                   "ld.param.u64 %rd3, [c];\n",
                   wrong.body, "ret;\n}\n"),
      std::move(arguments), 1, wrong.shared_memory_bytes);
}

Kernel SpinKernel(int64_t cycles, int blocks) {
  return OneLaunch(absl::StrCat(kHead,
                                ".visible .entry entry(.param .u64 n)\n{\n"
                                ".reg .b64 %rd<5>;\n.reg .pred %p;\n"
                                "ld.param.u64 %rd1, [n];\n"
                                "mov.u64 %rd2, %clock64;\n"
                                "loop:\n"
                                "mov.u64 %rd3, %clock64;\n"
                                "sub.u64 %rd4, %rd3, %rd2;\n"
                                "setp.lt.u64 %p, %rd4, %rd1;\n"
                                "@%p bra loop;\n"
                                "ret;\n}\n"),
                   {{Argument::Kind::kInteger, 0, cycles}}, blocks, 0);
}

}  // namespace tilewright
