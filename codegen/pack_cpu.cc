#include <vector>

#include "codegen/host_backend.h"
#include "codegen/pack_text.h"

namespace tilewright {
namespace {

// State components of XCR0 (Intel SDM volume 1, section 13.1): SSE 2, AVX 4; opmask 32, ZMM 64 and
// 128.
constexpr uint32_t kYmm = 0x6;
constexpr uint32_t kZmm = 0xe6;

// Features whose instructions LLVM's code generator emits on its own for plain arithmetic, memory
// and vector code, with their CPUID bits (Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E).
// Features that only intrinsics reach (AES, SHA, …) are not asked for.
constexpr CpuFeature kFeatures[] = {
    {"cmov", 1, 0, 'd', 15, 0},
    {"sse3", 1, 0, 'c', 0, 0},
    {"ssse3", 1, 0, 'c', 9, 0},
    {"sse4.1", 1, 0, 'c', 19, 0},
    {"sse4.2", 1, 0, 'c', 20, 0},
    {"movbe", 1, 0, 'c', 22, 0},
    {"popcnt", 1, 0, 'c', 23, 0},
    {"avx", 1, 0, 'c', 28, kYmm},
    {"f16c", 1, 0, 'c', 29, kYmm},
    {"fma", 1, 0, 'c', 12, kYmm},
    {"bmi", 7, 0, 'b', 3, 0},
    {"avx2", 7, 0, 'b', 5, kYmm},
    {"bmi2", 7, 0, 'b', 8, 0},
    {"lzcnt", 0x80000001, 0, 'c', 5, 0},
    {"xop", 0x80000001, 0, 'c', 11, kYmm},
    {"fma4", 0x80000001, 0, 'c', 16, kYmm},
    {"tbm", 0x80000001, 0, 'c', 21, 0},
    {"gfni", 7, 0, 'c', 8, 0},
    {"avx512f", 7, 0, 'b', 16, kZmm},
    {"avx512dq", 7, 0, 'b', 17, kZmm},
    {"avx512ifma", 7, 0, 'b', 21, kZmm},
    {"avx512cd", 7, 0, 'b', 28, kZmm},
    {"avx512bw", 7, 0, 'b', 30, kZmm},
    {"avx512vl", 7, 0, 'b', 31, kZmm},
    {"avx512vbmi", 7, 0, 'c', 1, kZmm},
    {"avx512vbmi2", 7, 0, 'c', 6, kZmm},
    {"avx512vnni", 7, 0, 'c', 11, kZmm},
    {"avx512bitalg", 7, 0, 'c', 12, kZmm},
    {"avx512vpopcntdq", 7, 0, 'c', 14, kZmm},
    {"avx512fp16", 7, 0, 'd', 23, kZmm},
    {"avxvnni", 7, 1, 'a', 4, kYmm},
    {"avx512bf16", 7, 1, 'a', 5, kZmm},
    {"avxifma", 7, 1, 'a', 23, kYmm},
    {"avxvnniint8", 7, 1, 'd', 4, kYmm},
    {"avxneconvert", 7, 1, 'd', 5, kYmm},
};

}  // namespace

std::vector<CpuFeature> RequiredCpuFeatures(const Target& target) {
  std::vector<CpuFeature> required;
  for (const CpuFeature& feature : kFeatures) {
    if (TargetHasFeature(target, feature.name)) required.push_back(feature);
  }
  return required;
}

}  // namespace tilewright
