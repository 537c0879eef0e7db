// The parts of a CUDA pack's header and launcher that are the same in every pack: C11 that is C++11
// too, over the driver API. pack_cuda.cc writes the tables between them.
#ifndef TILEWRIGHT_CODEGEN_PACK_CUDA_LAUNCHER_H_
#define TILEWRIGHT_CODEGEN_PACK_CUDA_LAUNCHER_H_

#include <string_view>

namespace tilewright {

// The header's: context and status codes. Names nothing of cuda.h but the type behind CUstream.
extern const std::string_view kCudaContextText;
// Includes, and the types of the tables. Before it: TW_MOST_FACTORS.
extern const std::string_view kCudaTypesText;
// Loads the code and interprets the recipes. Before it: the constants TW_COMPUTE_MAJOR,
// TW_COMPUTE_MINOR, TW_LATER_ONES_TOO, TW_MULTIPROCESSORS, TW_OBJECT_COUNT, TW_FUNCTION_COUNT,
// TW_MOST_ARGUMENTS; the tables tw_objects and tw_functions.
extern const std::string_view kCudaCodeText;

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PACK_CUDA_LAUNCHER_H_
