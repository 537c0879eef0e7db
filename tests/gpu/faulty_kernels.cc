#include "tests/gpu/faulty_kernels.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "codegen/ptxas.h"
#include "codegen/writer.h"
#include "schedule/contraction_wgmma.h"

namespace tilewright {
namespace {

constexpr char kExpression[] = "C[m,n] = sum(k: A[m,k] * B[n,k])";
constexpr char kType[] = "bf16";
constexpr int64_t kTypeBytes = 2;
constexpr absl::Duration kAssemblyDeadline = absl::Seconds(60);

struct Product {
  Workload workload;
  Names names;
};

// A product whose tensors lie in memory as those of `layout` do.
absl::StatusOr<Product> MakeProduct(const ProductShape& shape, const ProductShape& layout) {
  std::string sizes = absl::StrCat("m=", shape.m, " n=", shape.n, " k=", shape.k);
  if (shape.k != layout.k)
    absl::StrAppend(&sizes, " A.0.stride=", layout.k, " B.0.stride=", layout.k);
  if (shape.n != layout.n) absl::StrAppend(&sizes, " C.0.stride=", layout.n);
  Names names;
  absl::StatusOr<Workload> workload = Workload::Make(kExpression, {sizes, kType}, &names);
  if (!workload.ok()) return workload.status();
  return Product{*std::move(workload), std::move(names)};
}

// Writes a kernel and hands out its PTX, which a kernel that ptxas has assembled no longer has.
absl::StatusOr<Kernel> WriteWithPtx(const Candidate& candidate, std::string* ptx) {
  std::string folder = (std::filesystem::temp_directory_path() / "tilewright-ptx-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return absl::InternalError("no temporary directory");
  absl::StatusOr<Kernel> kernel =
      WriteKernel(candidate, DefaultCatalogue(), {.dump_directory = folder});
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!absl::EndsWith(entry.path().filename().string(), "kernel.ptx")) continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    *ptx = text.str();
  }
  std::filesystem::remove_all(folder);
  if (kernel.ok() && ptx->empty()) return absl::InternalError("the writer left no PTX");
  return kernel;
}

int BufferNamed(const Product& product, const std::string& name) {
  int number = 0;
  for (absl::Span<const int> buffers :
       {product.workload.parameters(), product.workload.outputs()}) {
    for (int tensor : buffers) {
      if (product.names.tensors[tensor] == name) return number;
      ++number;
    }
  }
  return -1;  // the product has A, B and C
}

// ---- The kernel of another product, called on this one's buffers

absl::StatusOr<Kernel> KernelOfOther(const ProductKernel& right, const ProductShape& shape) {
  const absl::StatusOr<Product> other = MakeProduct(shape, right.shape);
  if (!other.ok()) return other.status();
  absl::StatusOr<Kernel> kernel =
      WriteKernel({other->workload, right.target, right.schedule}, DefaultCatalogue());
  if (!kernel.ok()) return kernel;
  const Product own = {right.workload, right.names};
  int own_number[3] = {};
  for (const char* name : {"A", "B", "C"})
    own_number[BufferNamed(*other, name)] = BufferNamed(own, name);
  const Sizes sizes = other->workload.HighestSizes();
  for (Launch& launch : kernel->launches) {
    for (Argument& argument : launch.arguments) {
      if (argument.kind == Argument::Kind::kBuffer) argument.number = own_number[argument.number];
      if (argument.kind == Argument::Kind::kSize)
        argument = {Argument::Kind::kInteger, 0, sizes[argument.number]};
    }
  }
  for (TensorMap& map : kernel->tensor_maps) {
    if (map.buffer != TensorMap::kWorkspace) map.buffer = own_number[map.buffer];
  }
  kernel->domain = right.kernel.domain;
  return kernel;
}

// ---- Edits of the PTX

class PtxText {
 public:
  explicit PtxText(const std::string& text) : lines_(absl::StrSplit(text, '\n')) {}

  // The first line from `from` on that matches; FailedPrecondition: none.
  absl::StatusOr<size_t> Find(const std::string& pattern, size_t from = 0) const {
    const std::regex regex(pattern);
    for (size_t i = from; i < lines_.size(); ++i) {
      if (std::regex_search(lines_[i], regex)) return i;
    }
    return absl::FailedPreconditionError(absl::StrCat("the PTX has no line `", pattern, "`"));
  }
  absl::StatusOr<size_t> FindLast(const std::string& pattern) const {
    absl::StatusOr<size_t> last = Find(pattern);
    for (absl::StatusOr<size_t> next = last; next.ok(); next = Find(pattern, *next + 1))
      last = next;
    return last;
  }
  const std::string& line(size_t number) const { return lines_[number]; }
  std::string& line(size_t number) { return lines_[number]; }
  void InsertBefore(size_t number, std::string text) {
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(number), std::move(text));
  }
  // Where an entry's instructions begin: behind its declarations of registers.
  absl::StatusOr<size_t> Body(const std::string& entry) const {
    absl::StatusOr<size_t> at = Find(absl::StrCat("\\.entry ", entry, "\\("));
    if (at.ok()) at = Find("^\\{", *at);
    if (!at.ok()) return at;
    size_t body = *at + 1;
    for (size_t i = body; i < lines_.size() && !absl::StrContains(lines_[i], ";\t//"); ++i) {
      const bool declares = absl::StrContains(lines_[i], ".reg ") ||
                            absl::StrContains(lines_[i], ".local ") || lines_[i].empty();
      if (!declares) break;
      body = i + 1;
    }
    return body;
  }
  std::string Text() const { return absl::StrJoin(lines_, "\n"); }

 private:
  std::vector<std::string> lines_;
};

absl::StatusOr<Kernel> WithPtx(const ProductKernel& right, const PtxText& text) {
  Kernel kernel = right.kernel;
  const absl::StatusOr<Ptxas> ptxas = FindPtxas();
  if (!ptxas.ok()) return ptxas.status();
  if (ptxas->path.empty()) {
    kernel.objects = {{absl::StrCat("ptx-", right.target.llvm_cpu), text.Text()}};
    return kernel;
  }
  absl::StatusOr<Assembled> assembled =
      AssemblePtx(*ptxas, text.Text(), right.target.llvm_cpu, kAssemblyDeadline);
  if (!assembled.ok()) return assembled.status();
  kernel.objects = {{absl::StrCat("cubin-", right.target.llvm_cpu), std::move(assembled->cubin)}};
  return kernel;
}

// The warps whose number has the bits `value` under `mask` sleep.
std::string Delay(int mask, int value, int nanoseconds) {
  return absl::StrCat(
      "{ .reg .pred p; .reg .b32 w; mov.u32 w, %tid.x; shr.u32 w, w, 5; and.b32 w, w, ", mask,
      "; setp.eq.u32 p, w, ", value, "; @p nanosleep.u32 ", nanoseconds, "; }");
}

// A TMA copy into shared memory, its coordinates {depth, row}, taken apart.
constexpr char kTmaLoad[] =
    R"((cp\.async\.bulk\.tensor\.2d\.shared::cluster\S* \[[^\]]+\], \[[^,]+, \{)([^,]+), ([^}]+)(\}\].*;))";

// Replaces the coordinates of the first TMA copy: `code` computes q from `%0`, the coordinate.
absl::Status EditCoordinate(PtxText* text, bool depth, const std::string& code) {
  const absl::StatusOr<size_t> at = text->Find(kTmaLoad);
  if (!at.ok()) return at.status();
  std::smatch match;
  const std::string line = text->line(*at);
  std::regex_search(line, match, std::regex(kTmaLoad));
  const std::string changed = match[depth ? 2 : 3].str();
  const std::string copy = absl::StrCat(match[1].str(), depth ? "q" : match[2].str(), ", ",
                                        depth ? match[3].str() : "q", match[4].str());
  text->line(*at) = absl::StrCat(
      "{ .reg .b32 q; ", std::regex_replace(code, std::regex("%0"), changed), " ", copy, " }");
  return absl::OkStatus();
}

// The line that loads A's pointer, and its register.
absl::StatusOr<size_t> FindPointerOfA(const ProductKernel& right, const PtxText& text,
                                      std::string* pointer) {
  const Launch& launch = right.kernel.launches.back();
  const int buffer = BufferNamed({right.workload, right.names}, "A");
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if (argument.kind != Argument::Kind::kBuffer || argument.number != buffer) continue;
    const absl::StatusOr<size_t> at = text.Find(
        absl::StrCat("ld\\.param\\.u64\\s+%rd\\d+, \\[", launch.entry, "_param_", i, "\\]"));
    if (!at.ok()) return at;
    std::smatch match;
    std::regex_search(text.line(*at), match, std::regex("%rd\\d+"));
    *pointer = match[0].str();
    return at;
  }
  return absl::FailedPreconditionError("the kernel is not called with A's address");
}

bool ReadsByTma(const ProductKernel& right) { return !right.kernel.tensor_maps.empty(); }

// Sets %tw_other to 1 where this call's A is not that of the first call ever made, else to 0.
absl::Status RememberFirstCall(const ProductKernel& right, PtxText* text) {
  const Launch& launch = right.kernel.launches.back();
  const absl::StatusOr<size_t> body = text->Body(launch.entry);
  if (!body.ok()) return body.status();
  const int buffer = BufferNamed({right.workload, right.names}, "A");
  int number = -1;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    const bool of_a = argument.kind == Argument::Kind::kTensorMap
                          ? right.kernel.tensor_maps[argument.number].buffer == buffer
                          : argument.kind == Argument::Kind::kBuffer && argument.number == buffer;
    if (of_a && number < 0) number = static_cast<int>(i);
  }
  if (number < 0) return absl::FailedPreconditionError("the kernel is not called with A");
  // A tensor map holds the address in its first word, among other bits that are the same each time.
  text->InsertBefore(
      *body, absl::StrCat(".reg .b32 %tw_other; { .reg .pred p, r; .reg .b64 a, s, o; ld.param.b64 "
                          "a, [",
                          launch.entry, "_param_", number,
                          "]; mov.u64 s, tw_first_call; cvta.global.u64 s, s; atom.cas.b64 o, [s], "
                          "0, a; setp.ne.b64 p, o, 0; setp.ne.and.b64 r, o, a, p; selp.b32 "
                          "%tw_other, 1, 0, r; }"));
  const absl::StatusOr<size_t> head = text->Find("^\\.address_size");
  if (!head.ok()) return head.status();
  text->InsertBefore(*head + 1, ".global .align 8 .b64 tw_first_call = 0;");
  return absl::OkStatus();
}

absl::StatusOr<Kernel> OffsetTile(const ProductKernel& right) {
  PtxText text(right.ptx);
  if (ReadsByTma(right)) {
    const absl::Status edited = EditCoordinate(&text, false, "add.s32 q, %0, 1;");
    if (!edited.ok()) return edited;
    return WithPtx(right, text);
  }
  std::string pointer;
  const absl::StatusOr<size_t> at = FindPointerOfA(right, text, &pointer);
  if (!at.ok()) return at.status();
  text.InsertBefore(*at + 1, absl::StrCat("add.s64 ", pointer, ", ", pointer, ", ",
                                          right.shape.k * kTypeBytes, ";"));
  return WithPtx(right, text);
}

absl::StatusOr<Kernel> RightForTheFirstInput(const ProductKernel& right) {
  PtxText text(right.ptx);
  absl::Status edited;
  if (ReadsByTma(right)) {
    edited = EditCoordinate(&text, false, "add.s32 q, %0, %tw_other;");
  } else {
    std::string pointer;
    const absl::StatusOr<size_t> at = FindPointerOfA(right, text, &pointer);
    if (!at.ok()) return at.status();
    text.InsertBefore(*at + 1, absl::StrCat("{ .reg .b64 q; mul.wide.u32 q, %tw_other, ",
                                            right.shape.k * kTypeBytes, "; add.s64 ", pointer, ", ",
                                            pointer, ", q; }"));
  }
  if (edited.ok()) edited = RememberFirstCall(right, &text);
  if (!edited.ok()) return edited;
  return WithPtx(right, text);
}

absl::StatusOr<Kernel> StaleBuffer(const ProductKernel& right) {
  PtxText text(right.ptx);
  if (ReadsByTma(right)) {
    // From the third block of k on the copy brings the second again: what the stage has held.
    const auto& plan = static_cast<const ContractionWgmmaPlan&>(*right.plan);
    const absl::Status edited =
        EditCoordinate(&text, true, absl::StrCat("min.s32 q, %0, ", plan.tile_k, ";"));
    if (!edited.ok()) return edited;
    return WithPtx(right, text);
  }
  // The last copy of the text stands in the loop: what it would replace stays.
  const absl::StatusOr<size_t> at = text.FindLast(R"(cp\.async\.c[ag]\.shared)");
  if (!at.ok()) return at.status();
  text.line(*at).clear();
  return WithPtx(right, text);
}

// ---- Races

constexpr char kWait[] = R"(mbarrier\.try_wait)";
constexpr char kGiveBack[] = R"(@p mbarrier\.arrive\.shared::cta)";

// The wait of the consumers until a stage is full: the one that wgmma follows.
absl::StatusOr<size_t> FindFullWait(const PtxText& text) {
  for (absl::StatusOr<size_t> at = text.Find(kWait); at.ok(); at = text.Find(kWait, *at + 1)) {
    const absl::StatusOr<size_t> next = text.Find("mbarrier\\.arrive|wgmma\\.fence", *at + 1);
    if (next.ok() && absl::StrContains(text.line(*next), "wgmma.fence")) return at;
  }
  return absl::FailedPreconditionError("the PTX has no wait before wgmma");
}

// The stage is waited for only when it has been multiplied; the producer is late.
absl::StatusOr<Kernel> MultipliesBeforeFull(const ProductKernel& right) {
  PtxText text(right.ptx);
  const absl::StatusOr<size_t> wait = FindFullWait(text);
  if (!wait.ok()) return wait.status();
  const std::string moved = std::exchange(text.line(*wait), "");
  const absl::StatusOr<size_t> give_back = text.Find(kGiveBack, *wait);
  if (!give_back.ok()) return give_back.status();
  text.InsertBefore(*give_back, moved);
  const absl::StatusOr<size_t> expect = text.Find("mbarrier\\.arrive\\.expect_tx");
  if (!expect.ok()) return expect.status();
  text.InsertBefore(*expect, "nanosleep.u32 3000;");
  return WithPtx(right, text);
}

// The stage is given back before it is read, by a warpgroup of which one warp is late.
absl::StatusOr<Kernel> GivesBackBeforeReading(const ProductKernel& right) {
  PtxText text(right.ptx);
  const auto& plan = static_cast<const ContractionWgmmaPlan&>(*right.plan);
  for (absl::StatusOr<size_t> at = text.Find(kGiveBack); at.ok();
       at = text.Find(kGiveBack, *at + 1)) {
    text.line(*at) =
        std::regex_replace(text.line(*at), std::regex("@p mbarrier\\.arrive[^;]*;"), "");
  }
  const absl::StatusOr<size_t> wait = FindFullWait(text);
  if (!wait.ok()) return wait.status();
  std::smatch match;
  const std::string line = text.line(*wait);
  if (!std::regex_search(line, match, std::regex(R"(b64 p, \[(%r\d+)\])")))
    return absl::FailedPreconditionError(absl::StrCat("no address in `", line, "`"));
  text.InsertBefore(
      *wait + 1,
      absl::StrCat("{ .reg .pred p; .reg .b32 t, e; mov.u32 t, %tid.x; and.b32 t, t, 127; "
                   "setp.eq.u32 p, t, 0; add.s32 e, ",
                   match[1].str(), ", ", plan.empty_offset - plan.full_offset,
                   "; @p mbarrier.arrive.shared::cta.b64 _, [e]; } ", Delay(3, 3, 4000)));
  return WithPtx(right, text);
}

// The copy out of shared memory does not wait for a warp that is late to write there.
absl::StatusOr<Kernel> StoresBeforeStaged(const ProductKernel& right) {
  PtxText text(right.ptx);
  absl::StatusOr<size_t> fence = text.Find("fence\\.proxy\\.async");
  if (!fence.ok()) return fence.status();
  for (; fence.ok(); fence = text.Find("fence\\.proxy\\.async", *fence + 1)) {
    const absl::StatusOr<size_t> barrier = text.Find("bar\\.sync", *fence);
    if (!barrier.ok()) return barrier.status();
    text.line(*barrier).clear();
  }
  const absl::StatusOr<size_t> staged = text.Find("stmatrix");
  if (!staged.ok()) return staged.status();
  text.InsertBefore(*staged, Delay(3, 3, 10000));
  return WithPtx(right, text);
}

// The barrier of the loop over k, after the wait for this thread's own copies.
absl::StatusOr<size_t> FindLoopBarrier(const PtxText& text, size_t* wait) {
  const absl::StatusOr<size_t> group = text.Find("cp\\.async\\.wait_group");
  if (!group.ok()) return group;
  *wait = *group;
  return text.Find("bar\\.sync", *group);
}

absl::StatusOr<Kernel> NoBarrierInTheLoop(const ProductKernel& right) {
  PtxText text(right.ptx);
  size_t wait = 0;
  const absl::StatusOr<size_t> barrier = FindLoopBarrier(text, &wait);
  if (!barrier.ok()) return barrier.status();
  text.line(*barrier) = Delay(31, 1, 3000);
  return WithPtx(right, text);
}

absl::StatusOr<Kernel> NoWaitForCopies(const ProductKernel& right) {
  PtxText text(right.ptx);
  size_t wait = 0;
  const absl::StatusOr<size_t> barrier = FindLoopBarrier(text, &wait);
  if (!barrier.ok()) return barrier.status();
  text.line(wait).clear();
  return WithPtx(right, text);
}

// Copies go into a slot that a warp that is late still reads: the barrier stands behind them.
absl::StatusOr<Kernel> CopiesBeforeRead(const ProductKernel& right) {
  PtxText text(right.ptx);
  size_t wait = 0;
  const absl::StatusOr<size_t> barrier = FindLoopBarrier(text, &wait);
  if (!barrier.ok()) return barrier.status();
  const std::string moved = std::exchange(text.line(*barrier), "");
  const absl::StatusOr<size_t> commit = text.Find("cp\\.async\\.commit_group", *barrier);
  if (!commit.ok()) return commit.status();
  text.InsertBefore(*commit + 1, absl::StrCat(moved, " ", Delay(31, 1, 4000)));
  return WithPtx(right, text);
}

}  // namespace

absl::StatusOr<ProductKernel> WriteProductKernel(const Target& target, const ProductShape& shape,
                                                 const Schedule& schedule) {
  absl::StatusOr<Product> product = MakeProduct(shape, shape);
  if (!product.ok()) return product.status();
  const auto space = ScheduleSpace::Make(product->workload, target, AllVariants());
  if (!space.ok()) return space.status();
  absl::StatusOr<std::unique_ptr<Plan>> plan =
      (*space)->MakePlan(schedule, product->workload.HighestSizes());
  if (!plan.ok()) return plan.status();
  std::string ptx;
  absl::StatusOr<Kernel> kernel = WriteWithPtx({product->workload, target, schedule}, &ptx);
  if (!kernel.ok()) return kernel.status();
  return ProductKernel{target,
                       shape,
                       std::move(product->workload),
                       std::move(product->names),
                       schedule,
                       *std::move(plan),
                       *std::move(kernel),
                       std::move(ptx)};
}

absl::Span<const KernelFault> AllKernelFaults() {
  static const std::vector<std::string> kTma = {"contraction.wgmma", "contraction.skinny"};
  static const std::vector<std::string> kEvery = {"contraction.wgmma", "contraction.skinny",
                                                  "contraction.mma"};
  static const std::vector<std::string> kStaged = {"contraction.wgmma"};
  static const std::vector<std::string> kMma = {"contraction.mma"};
  static const auto* faults = new std::vector<KernelFault>{
      {"tile offset by a row", false, kEvery, OffsetTile},
      {"last column not written", false, kEvery,
       [](const ProductKernel& right) {
         return KernelOfOther(right, {right.shape.m, right.shape.n - 1, right.shape.k});
       }},
      {"a row written past the end", false, kEvery,
       [](const ProductKernel& right) {
         return KernelOfOther(right, {right.shape.m + 1, right.shape.n, right.shape.k});
       }},
      {"stale buffer", false, kEvery, StaleBuffer},
      {"one block of k dropped", false, kEvery,
       [](const ProductKernel& right) {
         return KernelOfOther(right, {right.shape.m, right.shape.n, right.shape.k - 64});
       }},
      {"right for the first input only", false, kEvery, RightForTheFirstInput},
      {"missing barrier: reads before copies arrive", true, kTma, MultipliesBeforeFull},
      {"missing barrier: stores before all have staged", true, kStaged, StoresBeforeStaged},
      {"early reuse: stage given back before it is read", true, kTma, GivesBackBeforeReading},
      {"missing barrier: none between copies and reads", true, kMma, NoBarrierInTheLoop},
      {"missing wait: reads before copies arrive", true, kMma, NoWaitForCopies},
      {"early reuse: copies before the last read", true, kMma, CopiesBeforeRead},
  };
  return *faults;
}

absl::Span<const FaultSubject> AllFaultSubjects() {
  // More tiles than SMs, more blocks of k than stages, and an incomplete tile on every side.
  static const ProductShape kLarge = {1500, 1424, 640};
  static const auto* subjects = new std::vector<FaultSubject>{
      {"wgmma, cooperative", kLarge,
       "contraction.wgmma{swap=0 mode=cooperative consumers=2 tile_m=128 tile_n=128 "
       "producer_registers=40 store=tma store_columns=64 store_buffers=2 tile_k=64 stages=4 "
       "in_flight=1 cluster=1 group=8 raster=rows}"},
      {"wgmma, ping-pong", kLarge,
       "contraction.wgmma{swap=0 mode=pingpong tile_m=64 tile_n=128 producer_registers=40 "
       "store=tma store_columns=64 store_buffers=2 tile_k=64 stages=4 cluster=1 group=8 "
       "raster=rows}"},
      {"skinny",
       {40, 1424, 640},
       "contraction.skinny{rows=64 split=1 groups=1 tile_k=64 stages=4 occupancy=1 in_flight=1}"},
      {"mma",
       {300, 272, 640},
       "contraction.mma{tile_m=64 tile_n=64 warps_m=2 warps_n=2 tile_k=64 stages=3 "
       "epilogue=registers group_m=8 blocks_per_core=1}"},
  };
  return *subjects;
}

}  // namespace tilewright
