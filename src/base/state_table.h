#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "src/base/check.h"

// Tables of states and events: what a state machine does on each event, state by state.
namespace elastic {

// Some of a machine's states.
template <class State>
class StateSet {
 public:
  constexpr StateSet(std::initializer_list<State> states) {
    for (const State state : states) bits_ |= bit(state);
  }
  constexpr bool has(State state) const { return (bits_ & bit(state)) != 0; }

 private:
  static constexpr unsigned bit(State state) { return 1U << static_cast<unsigned>(state); }
  unsigned bits_ = 0;
};

// Nothing is to be done: the event comes late, or is of no use in this state.
struct Ignored {};
inline constexpr Ignored ignored;
// Whoever sends events never sends this one in this state. That it comes is a defect, and ends the program.
struct Impossible {};
inline constexpr Impossible impossible;

// What a `Machine` does with an event in one state. `More` is what its handlers get beside the event.
template <class Machine, class Event, class... More>
class Cell {
 public:
  using Handler = void (Machine::*)(const Event&, More...);

  // As in the states that a row does not name.
  constexpr Cell() = default;
  constexpr Cell(Ignored) : kind_(Kind::kIgnored) {}
  constexpr Cell(Impossible) : kind_(Kind::kImpossible) {}
  constexpr Cell(Handler handler) : kind_(Kind::kHandled), handler_(handler) {}

  constexpr bool is_given() const { return kind_ != Kind::kAsOthers; }
  constexpr bool is_impossible() const { return kind_ == Kind::kImpossible; }
  void run(Machine& machine, const Event& event, More... more) const {
    if (kind_ == Kind::kHandled) (machine.*handler_)(event, more...);
  }

 private:
  enum class Kind { kAsOthers, kIgnored, kImpossible, kHandled };
  Kind kind_ = Kind::kAsOthers;
  Handler handler_ = nullptr;
};

// The cells of one event, by state: those that are not given are `others`.
template <class Cell, std::size_t kStates>
consteval std::array<Cell, kStates> row_of(std::array<Cell, kStates> cells, Cell others) {
  for (Cell& cell : cells) {
    if (!cell.is_given()) cell = others;
    if (!cell.is_given()) throw "a state without a cell";
  }
  return cells;
}

// Runs the cell of this state. An event that is impossible in it ends the program, and is named with the state's
// number.
template <class Cells, class Machine, class Event, class... More>
void run_cell(const Cells& cells, std::size_t state, Machine& machine, const Event& event, More&... more) {
  const auto& cell = cells.at(state);
  if (cell.is_impossible()) {
    static constexpr std::string_view kSignature = __PRETTY_FUNCTION__;
    constexpr std::string_view kBefore = "Event = ";
    std::string_view name = kSignature.substr(kSignature.rfind(kBefore) + kBefore.size());
    name = name.substr(0, name.find_first_of(";,]"));
    const std::string what = std::string(name) + " in state " + std::to_string(state);
    check_failed(what.c_str(), __FILE__, __LINE__);
  }
  cell.run(machine, event, more...);
}

}  // namespace elastic
