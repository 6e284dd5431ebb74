#include "health/progress/object_pickle.h"

#include <utility>

#include "src/base/check.h"
#include "src/base/pickle_bytes.h"
#include "src/base/text.h"

namespace elastic::progress {

using namespace pickle;

namespace {

constexpr std::uint64_t kOldestProtocol = 2;
constexpr std::uint64_t kNewestProtocol = 5;
constexpr std::size_t kStateOfObject = 2;  // its place in what an object holds

}  // namespace

using Kind = ObjectPickle::Kind;
using Value = ObjectPickle::Value;

std::optional<std::int64_t> Value::as_integer() const {
  return kind() == Kind::kInteger ? std::optional(static_cast<std::int64_t>(node().bits)) : std::nullopt;
}

std::optional<std::string_view> Value::as_text() const {
  return kind() == Kind::kText ? std::optional<std::string_view>(node().text) : std::nullopt;
}

std::string_view Value::class_name() const {
  if (kind() == Kind::kClass) return node().text;
  if (kind() == Kind::kObject) return pickle_->nodes_[node().held[0]].text;
  return {};
}

std::optional<Value> Value::item(std::size_t index) const {
  if (index >= items()) return {};
  return Value(*pickle_, node().held[index]);
}

std::optional<Value> Value::arguments() const {
  if (kind() != Kind::kObject) return {};
  return Value(*pickle_, node().held[1]);
}

std::optional<Value> Value::attribute(std::string_view name) const {
  if (kind() != Kind::kObject || node().held.size() <= kStateOfObject) return {};
  const Node& state = pickle_->nodes_[node().held[kStateOfObject]];
  if (state.kind != Kind::kDict) return {};
  // The last one counts, as in Python.
  for (std::size_t i = state.held.size(); i >= 2; i -= 2) {
    const Node& key = pickle_->nodes_[state.held[i - 2]];
    if (key.kind == Kind::kText && key.text == name) return Value(*pickle_, state.held[i - 1]);
  }
  return {};
}

// The machine that a pickle is a program for, which only puts values together.
class ObjectReader {
 public:
  ObjectReader(ObjectPickle& pickle, std::string_view bytes) : pickle_(pickle), bytes_(bytes) {}

  // Runs all of it. Returns why it is refused, or an empty text.
  std::string run() {
    while (!has_stopped_) {
      const std::size_t begins = bytes_.at();
      const auto opcode = static_cast<std::uint8_t>(bytes_.unsigned_number(1));
      if (!bytes_.is_short() && begins == 0 && opcode != kProto) wrong_ = "it is no pickle of protocol 2 to 5";
      if (!bytes_.is_short() && wrong_.empty()) step(opcode);
      if (bytes_.is_short()) wrong_ = "it ends before its end";
      if (!wrong_.empty()) return format("{} (at byte {})", wrong_, begins);
    }
    return bytes_.is_at_end() ? "" : "it goes on behind its end";
  }

 private:
  void step(std::uint8_t opcode) {
    switch (opcode) {
      case kProto: return protocol();
      case kFrame: return void(bytes_.take_bytes(8));
      case kNone: return push({.kind = Kind::kNone, .held = {}});
      case kNewTrue: return push({.kind = Kind::kBool, .bits = 1, .held = {}});
      case kNewFalse: return push({.kind = Kind::kBool, .held = {}});
      case kBinInt1: return push_integer(bytes_.unsigned_number(1));
      case kBinInt2: return push_integer(bytes_.unsigned_number(2));
      case kBinInt: return push_integer(bytes_.signed_number(4));
      case kLong1: return push_long();
      case kBinFloat: return push_float();
      case kShortBinUnicode: return push_text(Kind::kText, 1);
      case kBinUnicode: return push_text(Kind::kText, 4);
      case kBinUnicode8: return push_text(Kind::kText, 8);
      case kShortBinBytes: return push_text(Kind::kBytes, 1);
      case kBinBytes: return push_text(Kind::kBytes, 4);
      case kEmptyTuple:
      case kEmptyList:
      case kEmptySet: return push({.kind = Kind::kSequence, .held = {}});
      case kEmptyDict: return push({.kind = Kind::kDict, .held = {}});
      case kTuple1: return gather(1);
      case kTuple2: return gather(2);
      case kTuple3: return gather(3);
      default: step_of_stack(opcode);
    }
  }

  void step_of_stack(std::uint8_t opcode) {
    switch (opcode) {
      case kMark: return marks_.push_back(stack_.size());
      case kTuple:
      case kFrozenSet: return gather_marked();
      case kAppend: return fill(Kind::kSequence, 1);
      case kSetItem: return fill(Kind::kDict, 2);
      case kAppends:
      case kAddItems: return fill_marked(Kind::kSequence);
      case kSetItems: return fill_marked(Kind::kDict);
      case kGlobal: return push_global();
      case kStackGlobal: return push_stack_global();
      case kNewObject:
      case kReduce: return make_object();
      case kBuild: return give_state();
      case kMemoize: return remember(memo_.size());
      case kBinPut: return remember(bytes_.unsigned_number(1));
      case kLongBinPut: return remember(bytes_.unsigned_number(4));
      case kBinGet: return recall(bytes_.unsigned_number(1));
      case kLongBinGet: return recall(bytes_.unsigned_number(4));
      case kStop: return stop();
      default: wrong_ = why_refused(opcode, "message");
    }
  }

  void protocol() {
    const std::uint64_t version = bytes_.unsigned_number(1);
    if (bytes_.at() != 2 || version < kOldestProtocol || version > kNewestProtocol) {
      wrong_ = "it is no pickle of protocol 2 to 5";
    }
  }

  void push(ObjectPickle::Node node) {
    if (bytes_.is_short() || !wrong_.empty()) return;
    pickle_.nodes_.push_back(std::move(node));
    stack_.push_back(pickle_.nodes_.size() - 1);
  }

  void push_integer(std::uint64_t bits) { push({.kind = Kind::kInteger, .bits = bits, .held = {}}); }

  void push_long() {
    const auto count = static_cast<std::size_t>(bytes_.unsigned_number(1));
    if (count > pickle::kNumberBytes) {
      wrong_ = format("a number has more than {} bytes", pickle::kNumberBytes);
      return;
    }
    push_integer(bytes_.signed_number(count));
  }

  void push_float() { push({.kind = Kind::kFloat, .bits = bytes_.float_bits(), .held = {}}); }

  void push_text(Kind kind, std::size_t length_bytes) {
    const std::uint64_t length = bytes_.unsigned_number(length_bytes);
    push({.kind = kind, .text = std::string(bytes_.take_bytes(length)), .held = {}});
  }

  // How many values are above the last mark.
  std::size_t loose() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  bool needs(std::size_t count) {
    if (loose() < count) wrong_ = "an opcode has too few values before it";
    return wrong_.empty();
  }

  std::vector<std::size_t> take_top(std::size_t count) {
    const auto begins = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<std::size_t> taken(begins, stack_.end());
    stack_.erase(begins, stack_.end());
    return taken;
  }

  void gather(std::size_t count) {
    if (!needs(count)) return;
    push({.kind = Kind::kSequence, .held = take_top(count)});
  }

  bool needs_mark() {
    if (marks_.empty()) wrong_ = "an opcode has no mark before it";
    return wrong_.empty();
  }

  void gather_marked() {
    if (!needs_mark()) return;
    const std::size_t count = loose();
    marks_.pop_back();
    gather(count);
  }

  void fill_marked(Kind kind) {
    if (!needs_mark()) return;
    const std::size_t count = loose();
    marks_.pop_back();
    fill(kind, count);
  }

  // Puts the topmost values into the container below them.
  void fill(Kind kind, std::size_t count) {
    if (!needs(count + 1)) return;
    const std::vector<std::size_t> items = take_top(count);
    ObjectPickle::Node& container = pickle_.nodes_[stack_.back()];
    if (container.kind != kind || (kind == Kind::kDict && count % 2 != 0)) {
      wrong_ = "values have no container to go into";
      return;
    }
    container.held.insert(container.held.end(), items.begin(), items.end());
  }

  void push_global() {
    const std::string module(bytes_.take_line());
    const std::string name(bytes_.take_line());
    push({.kind = Kind::kClass, .text = module + " " + name, .held = {}});
  }

  void push_stack_global() {
    if (!needs(2)) return;
    const std::vector<std::size_t> parts = take_top(2);
    const ObjectPickle::Node& module = pickle_.nodes_[parts[0]];
    const ObjectPickle::Node& name = pickle_.nodes_[parts[1]];
    if (module.kind != Kind::kText || name.kind != Kind::kText) {
      wrong_ = "a class has no name";
      return;
    }
    push({.kind = Kind::kClass, .text = module.text + " " + name.text, .held = {}});
  }

  // NEWOBJ and REDUCE: a class and a tuple become an object, which is not made.
  void make_object() {
    if (!needs(2)) return;
    std::vector<std::size_t> parts = take_top(2);
    if (pickle_.nodes_[parts[0]].kind != Kind::kClass || pickle_.nodes_[parts[1]].kind != Kind::kSequence) {
      wrong_ = "an object has no class, or no arguments";
      return;
    }
    push({.kind = Kind::kObject, .held = std::move(parts)});
  }

  void give_state() {
    if (!needs(2)) return;
    const std::size_t state = take_top(1).front();
    ObjectPickle::Node& object = pickle_.nodes_[stack_.back()];
    if (object.kind != Kind::kObject) {
      wrong_ = "a state has no object";
      return;
    }
    object.held.resize(kStateOfObject);
    object.held.push_back(state);
  }

  void remember(std::uint64_t index) {
    if (bytes_.is_short() || !needs(1)) return;
    // Whoever writes pickles counts from 0 on.
    if (index > memo_.size()) {
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
    stack_.push_back(memo_[index]);
  }

  void stop() {
    if (stack_.size() != 1 || !marks_.empty()) {
      wrong_ = "STOP comes before everything has its place";
      return;
    }
    pickle_.root_ = stack_.front();
    has_stopped_ = true;
  }

  ObjectPickle& pickle_;
  pickle::Bytes bytes_;
  std::vector<std::size_t> stack_;
  std::vector<std::size_t> marks_;  // how high the stack was at each
  std::vector<std::size_t> memo_;
  bool has_stopped_ = false;
  std::string wrong_;
};

Result<ObjectPickle> ObjectPickle::read(std::string_view bytes) {
  ObjectPickle pickle;
  if (std::string wrong = ObjectReader(pickle, bytes).run(); !wrong.empty()) {
    return fail("cannot read a pickled message", std::move(wrong));
  }
  ELASTIC_CHECK(pickle.root_ < pickle.nodes_.size());
  return pickle;
}

}  // namespace elastic::progress
