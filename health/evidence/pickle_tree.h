#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"

namespace elastic::evidence {

// | a dump of PyTorch's flight recorder, as a file | {kPickleBytes}, {kPickleValues} values that stand in
// {kPicklePushes} places, {kPickleLevels} levels | it is refused, with the reason |
inline constexpr std::size_t kPickleBytes = 32 * 1024 * 1024;
inline constexpr std::size_t kPickleValues = 1024 * 1024;
inline constexpr std::size_t kPicklePushes = 4 * kPickleValues;
inline constexpr std::size_t kPickleLevels = 16;

// The values of a pickle of protocol 2 that has only what PyTorch's flight recorder writes: texts, numbers, booleans,
// None, lists, pairs and dictionaries. Nothing is executed: every opcode that imports, calls or builds an object is
// refused. A value may stand in several places; no value contains itself.
class PickleTree {
 public:
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kFloat, kText, kList, kTuple, kDict };

 private:
  struct Node {
    Kind kind = Kind::kNone;
    std::uint8_t level = 0;    // of nesting below it
    bool is_closed = false;    // a container that stands somewhere already, and gets no more items
    std::uint32_t length = 0;  // of a text; of a container its index
    std::uint64_t bits = 0;    // a number; of a text where it begins
  };

 public:
  // A value of a tree that outlives it.
  class Value {
   public:
    Kind kind() const { return node().kind; }
    bool is_dict() const { return kind() == Kind::kDict; }
    std::optional<bool> as_bool() const;
    std::optional<std::int64_t> as_integer() const;
    std::optional<std::string_view> as_text() const;
    // How many items a list or a pair has; 0 for other values.
    std::size_t items() const {
      return kind() == Kind::kList || kind() == Kind::kTuple ? tree_->containers_[node().length].size() : 0;
    }
    // Calls use(Value) for at most `most` items of a list or a pair, from the one at `first` on; for other values not
    // at all. Whoever reads a list needs a bound: the same one may stand in a million places.
    template <class Use>
    void each_item(Use use, std::size_t most, std::size_t first = 0) const {
      const std::size_t count = items();
      for (std::size_t i = first; i < count && i - first < most; ++i) {
        use(Value(*tree_, tree_->containers_[node().length][i]));
      }
    }
    // Calls use(name, Value) for those of the first `most` members of a dictionary whose key is a text; for other
    // values not at all.
    template <class Use>
    void each_member(Use use, std::size_t most) const {
      if (!is_dict()) return;
      const std::vector<std::uint32_t>& held = tree_->containers_[node().length];
      for (std::size_t i = 0; i + 1 < held.size() && i / 2 < most; i += 2) {
        if (const auto name = Value(*tree_, held[i]).as_text()) use(*name, Value(*tree_, held[i + 1]));
      }
    }

   private:
    friend class PickleTree;
    Value(const PickleTree& tree, std::uint32_t index) : tree_(&tree), index_(index) {}
    const Node& node() const { return tree_->nodes_[index_]; }
    const PickleTree* tree_;
    std::uint32_t index_;
  };

  // Reads a whole file. Fails on an opcode that no dump has (and names it), on one that does not fit the values before
  // it, above the bounds, and where not even the first value is there. `what` names the file in the error.
  static Result<PickleTree> read(std::string bytes, std::string what);

  Value root() const { return Value(*this, root_); }
  // The file ended before its end: what was there until then is in the tree, and the last values may be incomplete.
  bool is_cut() const { return is_cut_; }

 private:
  friend class PickleReader;
  std::string bytes_;
  std::vector<Node> nodes_;
  std::vector<std::vector<std::uint32_t>> containers_;  // a dictionary's: key, value, key, value
  std::uint32_t root_ = 0;
  bool is_cut_ = false;
};

}  // namespace elastic::evidence
