// How the least text is found.
//
// A program is written piece by piece (writing.h). Wherever the order is free (the next statement,
// operand, reduction index or term) every candidate starts a writing of its own; a name gets its
// number when it is first written. All writings advance together, and after each step those whose
// text is not least are dropped: the class of candidates is refined by what they write. Where they
// still tie, each is kept, so the result never depends on the caller's names or order. Sizes and
// types are written where a name first appears, which tells most candidates apart at once. Writings
// left at the end have equal texts and differ by a symmetry of the program.
#include "schedule/canonical.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "schedule/writing.h"

namespace tilewright {
namespace {

constexpr size_t kMostLeaves = 10000;
// Writings that may be started altogether; a bound on time for programs with very long chains.
constexpr int64_t kMostWritings = 1000000;

// A text under the given program's own numbers, in which groups are sorted: equal for equal parts.
void AppendIdentity(const Pieces& pieces, std::string* out) {
  for (const Piece& piece : pieces) {
    if (piece.kind != Piece::Kind::kGroup) {
      absl::StrAppend(out, static_cast<int>(piece.kind), piece.text, "\n", piece.number, "\n");
      continue;
    }
    std::vector<std::string> members(piece.members.size());
    for (size_t i = 0; i < members.size(); ++i) AppendIdentity(piece.members[i], &members[i]);
    std::sort(members.begin(), members.end());
    absl::StrAppend(out, "(", piece.text, "\n");
    for (const std::string& member : members) absl::StrAppend(out, member, "|");
    absl::StrAppend(out, ")");
  }
}

// What is being written: a sequence of pieces from `position`, or the `remaining` members of a
// group.
struct Frame {
  const Pieces* sequence = nullptr;
  size_t position = 0;
  const Piece* group = nullptr;
  std::vector<int> remaining;
};

struct Writing {
  std::vector<int> tensor_numbers;  // -1: not named yet
  std::vector<int> index_numbers;
  int next_index = 0;
  int next_tensor[3] = {0, 0, 0};  // by role
  std::vector<Frame> frames;
  std::vector<bool> is_written;  // by statement
  int statements_left = 0;
  std::string pending;  // text this writing adds next
  size_t used = 0;      // bytes of `pending` that are part of the common text
};

class Canonicaliser {
 public:
  explicit Canonicaliser(const ResolvedProgram& resolved) : program_(resolved.program) {
    for (const SizeRange& size : resolved.sizes) {
      index_notes_.push_back(size.fixed() ? absl::StrCat("=", size.low)
                                          : absl::StrCat("=", size.low, "..", size.high));
    }
    for (const TensorLayout& layout : resolved.layouts) tensor_notes_.push_back(Note(layout));
    int outputs = 0;
    std::vector<int> writer(program_.tensors.size(), -1);
    for (const Tensor& tensor : program_.tensors) {
      outputs += tensor.is_output ? 1 : 0;
      roles_.push_back(tensor.is_parameter ? 0 : tensor.is_output ? 1 : 2);
    }
    for (const Statement& statement : program_.statements) {
      Pieces pieces = WriteStatement(statement, Order::kFree);
      if (outputs > 1 && program_.tensors[statement.tensor].is_output) {
        Piece mark;
        mark.text = "out ";
        pieces.insert(pieces.begin(), std::move(mark));
      }
      statements_.push_back(std::move(pieces));
      std::vector<int> needs;
      Walk(*statement.value, [&](const Expr& expr) {
        if (expr.kind == Expr::Kind::kRead && writer[expr.tensor] >= 0) {
          needs.push_back(writer[expr.tensor]);
        }
      });
      needs_.push_back(std::move(needs));
      writer[statement.tensor] = static_cast<int>(statements_.size()) - 1;
    }
    for (const Pieces& pieces : statements_) FindEqualMembers(pieces);
  }

  absl::StatusOr<CanonicalForm> Run() {
    Writing first;
    first.tensor_numbers.assign(program_.tensors.size(), -1);
    first.index_numbers.assign(program_.indices.size(), -1);
    const int parameters = static_cast<int>(std::count(roles_.begin(), roles_.end(), 0));
    const int outputs = static_cast<int>(std::count(roles_.begin(), roles_.end(), 1));
    first.next_tensor[1] = parameters;
    first.next_tensor[2] = parameters + outputs;
    first.is_written.assign(statements_.size(), false);
    first.statements_left = static_cast<int>(statements_.size());
    std::string text = absl::StrCat("tw", kCanonicalVersion, " ");
    std::vector<Writing> writings;
    writings.push_back(std::move(first));
    while (true) {
      std::vector<Writing> ready;
      while (!writings.empty()) {
        Writing writing = std::move(writings.back());
        writings.pop_back();
        Advance(&writing, &writings);
        ready.push_back(std::move(writing));
        if (ready.size() + writings.size() > kMostLeaves || started_ > kMostWritings) {
          return absl::InvalidArgumentError(
              absl::StrCat("the program has no canonical text: more than ", kMostLeaves,
                           " orders and namings of its interchangeable parts tie; at most that "
                           "many are tried"));
        }
      }
      const std::string step = LeastStep(ready);
      if (step.empty()) return Choose(std::move(text), ready);
      text += step;
      for (Writing& writing : ready) {
        if (writing.pending.compare(writing.used, step.size(), step) != 0) continue;
        writing.used += step.size();
        writings.push_back(std::move(writing));
      }
    }
  }

 private:
  static std::string Note(const TensorLayout& layout) {
    std::string items;
    auto add = [&](auto... parts) { absl::StrAppend(&items, items.empty() ? "" : ",", parts...); };
    for (size_t d = 0; d < layout.dimensions.size(); ++d) {
      if (layout.dimensions[d].index < 0) add(d, "=", layout.dimensions[d].size);
    }
    for (size_t d = 0; d < layout.strides.size(); ++d) add(d, ".stride=", layout.strides[d]);
    return absl::StrCat(":", std::string(Info(layout.type).name),
                        items.empty() ? "" : absl::StrCat("{", items, "}"));
  }

  // Fills equal_ for all groups below.
  void FindEqualMembers(const Pieces& pieces) {
    for (const Piece& piece : pieces) {
      if (piece.kind != Piece::Kind::kGroup) continue;
      std::vector<int>& first = equal_[&piece];
      absl::flat_hash_map<std::string, int> seen;
      for (size_t i = 0; i < piece.members.size(); ++i) {
        std::string identity;
        AppendIdentity(piece.members[i], &identity);
        first.push_back(seen.emplace(std::move(identity), static_cast<int>(i)).first->second);
      }
      for (const Pieces& member : piece.members) FindEqualMembers(member);
    }
  }

  // Until there is pending text or nothing is left. Where several candidates may come next, the
  // writing takes the first and copies that take the others are added to *others.
  void Advance(Writing* writing, std::vector<Writing>* others) {
    if (writing->used == writing->pending.size()) {
      writing->pending.clear();
      writing->used = 0;
    }
    while (writing->pending.empty()) {
      if (writing->frames.empty()) {
        if (writing->statements_left == 0) return;
        NextStatement(writing, others);
        continue;
      }
      Frame& frame = writing->frames.back();
      if (frame.group != nullptr) {
        if (frame.remaining.empty()) {
          writing->frames.pop_back();
        } else {
          NextMember(writing, others);
        }
      } else if (frame.position == frame.sequence->size()) {
        writing->frames.pop_back();
      } else {
        WritePiece((*frame.sequence)[frame.position++], writing);
      }
    }
  }

  void WritePiece(const Piece& piece, Writing* writing) const {
    switch (piece.kind) {
      case Piece::Kind::kText:
        writing->pending = piece.text;
        break;
      case Piece::Kind::kIndex: {
        int& number = writing->index_numbers[piece.number];
        const bool is_new = number < 0;
        if (is_new) number = writing->next_index++;
        writing->pending = absl::StrCat("i", number, is_new ? index_notes_[piece.number] : "");
        break;
      }
      case Piece::Kind::kTensor: {
        int& number = writing->tensor_numbers[piece.number];
        const bool is_new = number < 0;
        if (is_new) number = writing->next_tensor[roles_[piece.number]]++;
        writing->pending = absl::StrCat("t", number, is_new ? tensor_notes_[piece.number] : "");
        break;
      }
      case Piece::Kind::kGroup: {
        Frame frame;
        frame.group = &piece;
        for (size_t i = 0; i < piece.members.size(); ++i) {
          frame.remaining.push_back(static_cast<int>(i));
        }
        writing->frames.push_back(std::move(frame));
        break;
      }
    }
  }

  void NextStatement(Writing* writing, std::vector<Writing>* others) {
    auto start = [&](int statement, Writing* w) {
      if (w->statements_left < static_cast<int>(statements_.size())) w->pending = ";";
      --w->statements_left;
      w->is_written[statement] = true;
      Frame frame;
      frame.sequence = &statements_[statement];
      w->frames.push_back(std::move(frame));
    };
    std::vector<int> candidates;
    for (size_t s = 0; s < statements_.size(); ++s) {
      const bool can_come = !writing->is_written[s] &&
                            std::all_of(needs_[s].begin(), needs_[s].end(),
                                        [&](int need) { return writing->is_written[need]; });
      if (can_come) candidates.push_back(static_cast<int>(s));
    }
    for (size_t i = 1; i < candidates.size(); ++i) {
      others->push_back(*writing);
      start(candidates[i], &others->back());
      ++started_;
    }
    start(candidates[0], writing);
  }

  void NextMember(Writing* writing, std::vector<Writing>* others) {
    auto start = [](size_t at, Writing* w) {
      Frame& group = w->frames.back();
      if (group.remaining.size() < group.group->members.size()) w->pending = group.group->text;
      Frame frame;
      frame.sequence = &group.group->members[group.remaining[at]];
      group.remaining.erase(group.remaining.begin() + at);
      w->frames.push_back(std::move(frame));
    };
    const Frame& group = writing->frames.back();
    const std::vector<int>& equal = equal_.at(group.group);
    // One of several equal members is enough.
    std::vector<int> tried = {equal[group.remaining[0]]};
    for (size_t i = 1; i < group.remaining.size(); ++i) {
      const int same_as = equal[group.remaining[i]];
      if (std::find(tried.begin(), tried.end(), same_as) != tried.end()) continue;
      tried.push_back(same_as);
      others->push_back(*writing);
      start(i, &others->back());
      ++started_;
    }
    start(0, writing);
  }

  // The least text that the writings add in as many bytes as all of them have ready; empty at the
  // end of the text.
  static std::string LeastStep(const std::vector<Writing>& ready) {
    size_t length = std::string::npos;
    for (const Writing& w : ready) length = std::min(length, w.pending.size() - w.used);
    std::string least = ready[0].pending.substr(ready[0].used, length);
    for (const Writing& w : ready) {
      if (w.pending.compare(w.used, length, least) < 0) least = w.pending.substr(w.used, length);
    }
    return least;
  }

  // Of equal writings, the one in which the caller's first tensor has the lowest number, then the
  // second, and so on.
  static CanonicalForm Choose(std::string text, const std::vector<Writing>& ready) {
    const Writing* best = nullptr;
    for (const Writing& writing : ready) {
      if (best == nullptr || std::tie(writing.tensor_numbers, writing.index_numbers) <
                                 std::tie(best->tensor_numbers, best->index_numbers)) {
        best = &writing;
      }
    }
    return {std::move(text), best->tensor_numbers, best->index_numbers};
  }

  const Program& program_;
  std::vector<std::string> index_notes_;
  std::vector<std::string> tensor_notes_;
  std::vector<int> roles_;  // by tensor: 0 parameter, 1 output, 2 intermediate
  std::vector<Pieces> statements_;
  std::vector<std::vector<int>> needs_;  // by statement: the statements that write what it reads
  // By group: for each member, the first member that equals it.
  absl::flat_hash_map<const Piece*, std::vector<int>> equal_;
  int64_t started_ = 0;
};

}  // namespace

absl::StatusOr<CanonicalForm> Canonicalise(const ResolvedProgram& resolved) {
  return Canonicaliser(resolved).Run();
}

absl::StatusOr<CanonicalParts> SplitCanonicalText(std::string_view text) {
  const std::string prefix = absl::StrCat("tw", kCanonicalVersion, " ");
  if (text.substr(0, prefix.size()) != prefix) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", std::string(text.substr(0, text.find(' ')).substr(0, 40)),
                     "' is no known version of canonical text; this build reads '", prefix, "…'"));
  }
  CanonicalParts parts;
  auto is_name = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
  size_t at = prefix.size();
  while (at < text.size()) {
    if (!is_name(text[at])) {
      parts.expression += text[at++];
      continue;
    }
    const size_t begin = at;
    while (at < text.size() && is_name(text[at])) ++at;
    const std::string name(text.substr(begin, at - begin));
    parts.expression += name;
    const bool is_numbered = name.size() > 1 && absl::ascii_isdigit(name[1]);
    const std::string_view rest = text.substr(at);
    if (is_numbered && name[0] == 'i' && rest.size() > 1 && rest[0] == '=' && rest[1] != '=') {
      const size_t end = std::min(rest.find_first_not_of("0123456789.", 1), rest.size());
      absl::StrAppend(&parts.options.sizes, name, std::string(rest.substr(0, end)), " ");
      at += end;
    } else if (is_numbered && name[0] == 't' && !rest.empty() && rest[0] == ':') {
      size_t end = std::min(rest.find_first_of("[{"), rest.size());
      absl::StrAppend(&parts.options.types, name, std::string(rest.substr(0, end)), " ");
      if (end < rest.size() && rest[end] == '{') {
        const size_t close = std::min(rest.find('}', end), rest.size());
        for (const ListWord& word : SplitList(rest.substr(end + 1, close - end - 1))) {
          absl::StrAppend(&parts.options.sizes, name, ".", std::string(word.text), " ");
        }
        end = std::min(close + 1, rest.size());
      }
      at += end;
    }
  }
  return parts;
}

}  // namespace tilewright
