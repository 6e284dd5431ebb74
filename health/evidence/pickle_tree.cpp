#include "health/evidence/pickle_tree.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/pickle_bytes.h"
#include "src/base/text.h"

namespace elastic::evidence {

using namespace pickle;

namespace {

constexpr std::uint8_t kProtocol = 2;

}  // namespace

using Kind = PickleTree::Kind;

std::optional<bool> PickleTree::Value::as_bool() const {
  return kind() == Kind::kBool ? std::optional(node().bits != 0) : std::nullopt;
}

std::optional<std::int64_t> PickleTree::Value::as_integer() const {
  return kind() == Kind::kInteger ? std::optional(static_cast<std::int64_t>(node().bits)) : std::nullopt;
}

std::optional<std::string_view> PickleTree::Value::as_text() const {
  if (kind() != Kind::kText) return {};
  return std::string_view(tree_->bytes_).substr(node().bits, node().length);
}

// The machine that a pickle is a program for, with the opcodes of a dump only.
class PickleReader {
 public:
  explicit PickleReader(PickleTree& tree) : tree_(tree), bytes_(tree.bytes_) {}

  // Runs all of it. Returns why it is refused, or an empty text.
  std::string run() {
    if (tree_.bytes_.size() > kPickleBytes) return format("it has more than {} MiB", kPickleBytes >> 20);
    while (!has_stopped_) {
      const std::size_t begins = bytes_.at();
      if (bytes_.is_at_end()) return end_early();
      const auto opcode = static_cast<std::uint8_t>(bytes_.unsigned_number(1));
      if (begins == 0 && opcode != kProto) return "it does not begin as a pickle of protocol 2";
      step(opcode);
      if (bytes_.is_short()) return end_early();
      if (!wrong_.empty()) return format("{} (at byte {})", wrong_, begins);
    }
    return {};
  }

 private:
  void step(std::uint8_t opcode) {
    switch (opcode) {
      case kProto: return protocol();
      case kNone: return push_new({.kind = Kind::kNone});
      case kNewTrue: return push_new({.kind = Kind::kBool, .bits = 1});
      case kNewFalse: return push_new({.kind = Kind::kBool});
      case kBinInt1: return push_integer(bytes_.unsigned_number(1));
      case kBinInt2: return push_integer(bytes_.unsigned_number(2));
      case kBinInt: return push_integer(bytes_.signed_number(4));
      case kLong1: return push_long();
      case kBinFloat: return push_float();
      case kBinUnicode: return push_text();
      case kEmptyList: return push_container(Kind::kList);
      case kEmptyDict: return push_container(Kind::kDict);
      case kTuple2: return tuple();
      case kMark: return mark();
      case kAppends: return fill(Kind::kList);
      case kSetItems: return fill(Kind::kDict);
      case kBinPut: return remember(bytes_.unsigned_number(1));
      case kLongBinPut: return remember(bytes_.unsigned_number(4));
      case kBinGet: return recall(bytes_.unsigned_number(1));
      case kLongBinGet: return recall(bytes_.unsigned_number(4));
      case kStop: return stop();
      default: wrong_ = why_refused(opcode, "dump");
    }
  }

  void protocol() {
    const std::uint64_t version = bytes_.unsigned_number(1);
    if (bytes_.at() != 2 || version != kProtocol) wrong_ = "it is not a pickle of protocol 2";
  }

  void push(std::uint32_t index) {
    if (++pushes_ > kPicklePushes) {
      wrong_ = format("it puts values anywhere more than {} times", kPicklePushes);
      return;
    }
    stack_.push_back(index);
  }

  void push_new(PickleTree::Node node) {
    if (bytes_.is_short() || !wrong_.empty()) return;
    if (tree_.nodes_.size() == kPickleValues) {
      wrong_ = format("it has more than {} values", kPickleValues);
      return;
    }
    tree_.nodes_.push_back(node);
    push(static_cast<std::uint32_t>(tree_.nodes_.size() - 1));
  }

  void push_integer(std::uint64_t bits) { push_new({.kind = Kind::kInteger, .bits = bits}); }

  void push_long() {
    const auto count = static_cast<std::size_t>(bytes_.unsigned_number(1));
    if (count > pickle::kNumberBytes) {
      wrong_ = format("a number has more than {} bytes", pickle::kNumberBytes);
      return;
    }
    push_integer(bytes_.signed_number(count));
  }

  void push_float() { push_new({.kind = Kind::kFloat, .bits = bytes_.float_bits()}); }

  void push_text() {
    const auto length = static_cast<std::uint32_t>(bytes_.unsigned_number(4));
    if (bytes_.is_short()) return;
    const std::size_t begins = bytes_.at();
    bytes_.take_bytes(length);
    push_new({.kind = Kind::kText, .length = length, .bits = begins});
  }

  void push_container(Kind kind) {
    const auto index = static_cast<std::uint32_t>(tree_.containers_.size());
    push_new({.kind = kind, .level = 1, .length = index});
    if (wrong_.empty()) tree_.containers_.emplace_back();
  }

  // How many values are above the last mark.
  std::size_t loose() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  void mark() {
    if (marks_.size() == kPickleLevels) {
      wrong_ = too_deep();
      return;
    }
    marks_.push_back(stack_.size());
  }

  void tuple() {
    if (loose() < 2) {
      wrong_ = "TUPLE2 needs two values";
      return;
    }
    const std::vector<std::uint32_t> pair(stack_.end() - 2, stack_.end());
    stack_.resize(stack_.size() - 2);
    push_container(Kind::kTuple);
    if (wrong_.empty()) put_into(stack_.back(), pair);
  }

  // APPENDS and SETITEMS: what is above the last mark goes into the value below it.
  void fill(Kind kind) {
    const std::string_view name = kind == Kind::kList ? "APPENDS" : "SETITEMS";
    if (marks_.empty() || marks_.back() == 0) {
      wrong_ = format("{} has no mark with a value below", name);
      return;
    }
    const std::uint32_t target = stack_[marks_.back() - 1];
    const bool below_earlier_mark = marks_.size() > 1 && marks_[marks_.size() - 2] >= marks_.back();
    const PickleTree::Node& node = tree_.nodes_[target];
    if (below_earlier_mark || node.kind != kind || node.is_closed) {
      wrong_ = format("{} has nothing to put values into", name);
      return;
    }
    if (kind == Kind::kDict && loose() % 2 != 0) {
      wrong_ = "SETITEMS has a key without a value";
      return;
    }
    close_mark();
  }

  // Puts what is above the last mark into the container below it, and takes the mark away.
  void close_mark() {
    const std::size_t height = marks_.back();
    const std::vector<std::uint32_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(height), stack_.end());
    stack_.resize(height);
    marks_.pop_back();
    put_into(stack_.back(), items);
  }

  void put_into(std::uint32_t target, const std::vector<std::uint32_t>& items) {
    PickleTree::Node& container = tree_.nodes_[target];
    for (const std::uint32_t item : items) {
      PickleTree::Node& node = tree_.nodes_[item];
      node.is_closed = true;
      container.level = std::max(container.level, static_cast<std::uint8_t>(node.level + 1));
    }
    if (container.level > kPickleLevels) wrong_ = too_deep();
    std::vector<std::uint32_t>& held = tree_.containers_[container.length];
    held.insert(held.end(), items.begin(), items.end());
  }

  static std::string too_deep() { return format("it is nested deeper than {} levels", kPickleLevels); }

  void remember(std::uint64_t index) {
    if (bytes_.is_short()) return;
    // Whoever writes pickles counts from 0 on.
    if (loose() == 0 || index > memo_.size()) {
      wrong_ = "a value is remembered out of order";
    } else if (index == memo_.size()) {
      memo_.push_back(stack_.back());
    } else {
      memo_[index] = stack_.back();
    }
  }

  void recall(std::uint64_t index) {
    if (bytes_.is_short()) return;
    if (index >= memo_.size()) {
      wrong_ = "a value is recalled that was not remembered";
      return;
    }
    // From here on it may stand in several places: none of them may be in itself.
    tree_.nodes_[memo_[index]].is_closed = true;
    push(memo_[index]);
  }

  void stop() {
    if (stack_.size() != 1 || !marks_.empty()) {
      wrong_ = "STOP comes before everything has its place";
      return;
    }
    tree_.root_ = stack_.front();
    has_stopped_ = true;
  }

  // The file has ended early: what waits for its place is put there.
  std::string end_early() {
    tree_.is_cut_ = true;
    while (!marks_.empty()) {
      const std::size_t height = marks_.back();
      const bool has_target = height > 0 && (marks_.size() < 2 || marks_[marks_.size() - 2] < height) &&
                              !tree_.nodes_[stack_[height - 1]].is_closed;
      const Kind kind = has_target ? tree_.nodes_[stack_[height - 1]].kind : Kind::kNone;
      if (kind == Kind::kDict && loose() % 2 != 0) stack_.pop_back();
      if (kind == Kind::kDict || kind == Kind::kList) {
        close_mark();
      } else {
        stack_.resize(height);
        marks_.pop_back();
      }
    }
    if (stack_.empty()) return "it ends before its first value";
    tree_.root_ = stack_.front();
    return wrong_;
  }

  PickleTree& tree_;
  pickle::Bytes bytes_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;  // how high the stack was at each
  std::vector<std::uint32_t> memo_;
  std::size_t pushes_ = 0;
  bool has_stopped_ = false;
  std::string wrong_;
};

Result<PickleTree> PickleTree::read(std::string bytes, std::string what) {
  PickleTree tree;
  tree.bytes_ = std::move(bytes);
  if (std::string wrong = PickleReader(tree).run(); !wrong.empty()) {
    return fail("cannot read " + std::move(what), std::move(wrong));
  }
  ELASTIC_CHECK(tree.root_ < tree.nodes_.size());
  return tree;
}

}  // namespace elastic::evidence
