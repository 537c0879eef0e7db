// C text that the launchers of every backend share: prototypes, header, tables of a kernel's
// domain, and the code that chooses a kernel by sizes. Only the pack's own sources include it.
// Deterministic. Thread-safe.
#ifndef TILEWRIGHT_CODEGEN_PACK_C_H_
#define TILEWRIGHT_CODEGEN_PACK_C_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "codegen/pack.h"
#include "codegen/pack_text.h"

namespace tilewright {

// `static const TYPE NAME[] = {rows};`, never empty: C has no empty tables, so `last_row`, which
// nothing reads, ends it.
std::string CTable(const std::string& type, const std::string& name, std::vector<std::string> rows,
                   const std::string& last_row);

// A tw_argument: where a launch's argument comes from. The sources that no CPU kernel has are in
// the types of GPU launchers only.
std::string ArgumentRow(const Argument& argument);

// `static const tw_kernel tw_kernel_NAME = {`, before it the tables that it names, and its first
// member, the domain; the launcher's own members and `};` follow.
std::string BeginKernelTable(const PackEntry& entry, const std::string& own_tables);
// The dispatch list `tw_cases_NAME`.
std::string CaseTable(const PackEntry& entry);
// The function itself, by tw_call(cases, case_count, buffers, sizes, context), and
// NAME_workspace_bytes.
std::string FunctionBody(const PackEntry& entry, const PackKind& kind);

// Types of a kernel's domain, and the checks of sizes and buffers; `code_prefix` is that of the
// kind's status codes. A launcher defines tw_kernel after them, whose first member is a tw_domain
// `domain`, and then has DispatchText().
std::string DomainText(std::string_view code_prefix);
std::string DispatchText();

}  // namespace tilewright

#endif  // TILEWRIGHT_CODEGEN_PACK_C_H_
