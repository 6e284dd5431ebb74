#include "src/report/python_traceback.h"

#include "src/base/text.h"

namespace elastic::report {
namespace {

constexpr std::string_view kHeader = "Traceback (most recent call last):";
constexpr std::string_view kCause = "The above exception was the direct cause of the following exception:";
constexpr std::string_view kContext = "During handling of the above exception, another exception occurred:";
// The longest prefix before every line; a longer one is some other text that ends in the same words.
constexpr std::size_t kPrefixBytes = 64;
// The most lines of one exception's message.
constexpr int kMessageLines = 20;

struct Line {
  std::string_view text;  // without its line end
  std::size_t begin;
  std::size_t end;  // behind the line end
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// "ValueError: text", "package.Error", "KeyboardInterrupt"
bool is_exception_line(std::string_view line) {
  std::size_t length = 0;
  while (length < line.size() && is_name_character(line[length])) ++length;
  if (length == 0 || (line[0] >= '0' && line[0] <= '9') || line[0] == '.') return false;
  return length == line.size() || line.substr(length) == ":" || line.substr(length).starts_with(": ");
}

// Reads line by line; keeps the last traceback that was finished.
class Finder {
 public:
  void line(const Line& line) {
    std::string_view text = line.text;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.ends_with(kHeader) && text.size() <= kHeader.size() + kPrefixBytes) {
      begin(line, text.substr(0, text.size() - kHeader.size()));
      return;
    }
    // Text of a log before the header is not the prefix of the lines that follow.
    if (state_ == State::kBegun && text.starts_with("  File \"")) prefix_ = {};
    if (state_ != State::kOutside && text.starts_with(prefix_)) {
      inside(line, text.substr(prefix_.size()));
    }
  }

  std::optional<Traceback> result() {
    keep();
    return std::move(last_);
  }

 private:
  enum class State { kOutside, kBegun, kFrames, kGroup, kMessage };

  void begin(const Line& line, std::string_view before) {
    // An exception group is drawn as a tree behind the prefix; its lines are kept unchanged.
    std::string_view tree;
    if (const std::size_t plus = before.find("+ Exception Group "); plus != std::string_view::npos) {
      const std::size_t last = before.substr(0, plus).find_last_not_of(' ');
      tree = before.substr(last == std::string_view::npos ? 0 : last + 1);
      before.remove_suffix(tree.size());
    }
    if (!chained_ || before != prefix_) {
      keep();
      current_ = Traceback{};
      current_.begin = line.begin;
    }
    chained_ = false;
    prefix_ = before;
    state_ = tree.empty() ? State::kBegun : State::kGroup;
    open_exception_.clear();
    add(tree);
    current_.text += kHeader;
  }

  void inside(const Line& line, std::string_view text) {
    switch (state_) {
      case State::kBegun:
      case State::kFrames: frame_line(line, text); break;
      case State::kGroup: group_line(line, text); break;
      case State::kMessage: message_line(line, text); break;
      case State::kOutside: break;
    }
  }

  void frame_line(const Line& line, std::string_view text) {
    if (text.starts_with(' ')) {
      state_ = State::kFrames;
      add(text);
    } else if (is_exception_line(text)) {
      state_ = State::kMessage;
      message_lines_ = 0;
      open_exception_ = std::string(text);
      add(text);
      finish(line);
    }
  }

  void group_line(const Line& line, std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos || first == 0 || (text[first] != '|' && text[first] != '+')) {
      state_ = State::kOutside;
      return;
    }
    add(text);
    // The group's own exception is the first one right behind its bar.
    const std::string_view content = text.substr(first + 1);
    if (open_exception_.empty() && content.starts_with(' ') && is_exception_line(content.substr(1))) {
      open_exception_ = std::string(content.substr(1));
    }
    if (!open_exception_.empty()) finish(line);
  }

  void message_line(const Line& line, std::string_view text) {
    if (text == kCause || text == kContext) {
      // An empty line belongs to the next traceback, if one follows.
      add("");
      add(text);
      add("");
      chained_ = true;
    } else if (text.empty() || chained_ || message_lines_ >= kMessageLines) {
      message_lines_ = kMessageLines;  // an empty line ends the message, but a chain may still go on
    } else {
      ++message_lines_;
      add(text);
      finish(line);
    }
  }

  void add(std::string_view text) {
    if (!current_.text.empty()) current_.text += '\n';
    current_.text += text;
  }

  void finish(const Line& line) {
    finished_bytes_ = current_.text.size();
    current_.end = line.end;
    if (current_.exception != open_exception_) current_.exception = open_exception_;
  }

  void keep() {
    if (finished_bytes_ == 0) return;
    current_.text.resize(finished_bytes_);
    finished_bytes_ = 0;
    last_ = std::move(current_);
  }

  State state_ = State::kOutside;
  std::string_view prefix_;
  Traceback current_;
  std::string open_exception_;      // the exception of the traceback that is being read
  std::size_t finished_bytes_ = 0;  // the size of current_.text up to the last exception; 0: there is none yet
  bool chained_ = false;            // a sentence that announces another traceback has been read
  int message_lines_ = 0;
  std::optional<Traceback> last_;
};

}  // namespace

std::optional<Traceback> last_traceback(std::string_view text) {
  Finder finder;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t at = text.find('\n', begin);
    const std::size_t end = at == std::string_view::npos ? text.size() : at + 1;
    finder.line({text.substr(begin, (at == std::string_view::npos ? text.size() : at) - begin), begin, end});
    begin = end;
  }
  return finder.result();
}

std::string exception_of(std::string_view traceback) {
  const auto found = last_traceback(traceback);
  return found ? found->exception : std::string();
}

}  // namespace elastic::report
