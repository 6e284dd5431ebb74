#include "cli/run/commands.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/run/http_exchange.h"
#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/screen_text.h"
#include "src/base/text.h"
#include "src/net/http/query.h"
#include "src/net/http/response.h"
#include "src/net/loop.h"
#include "src/output/write_all.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"
#include "src/status/status_page.h"

namespace elastic::run {
namespace {

constexpr std::int64_t kEveryMs = 2'000;
constexpr std::size_t kMostPeerPorts = 8;

// The document in an answer to a request for /status.
Result<Json> document_of(const HttpAnswer& answer, const HttpPlace& place) {
  const auto refuse = [&](std::string reason, std::string remedy) {
    return fail(format("--status={}", place.text()), std::move(reason), std::move(remedy));
  };
  if (answer.status == 401) {
    return refuse("the job has another token",
                  "set ELASTIC_RUN_TOKEN, or give --rdzv-conf=token_file=FILE, as its nodes do");
  }
  if (answer.status != 200) {
    return refuse(format("it answers {}: {}", answer.status, printable(trim(answer.body))), "try again later");
  }
  constexpr std::size_t kMostLevels = 20;
  constexpr std::size_t kMostMembers = 1000;
  if (std::string over = json_over_bounds(answer.body, kMostLevels, kMostMembers); !over.empty()) {
    return refuse(std::move(over), kNotOurs);
  }
  auto json = Json::parse(answer.body, "its status");
  if (!json) return refuse(json.error().text(), kNotOurs);
  if (!status::is_status(*json)) return refuse("its /status is not elastic-run's", kNotOurs);
  return json;
}

// What stdout is.
struct Screen {
  bool is_terminal = false;
  std::size_t columns = 0;  // 0: unlimited
  std::size_t rows = 0;
};

Screen screen() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0) return {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {true, 80, 24};
  return {true, size.ws_col, size.ws_row};
}

// Cuts the page to the rows that there are, and adds a line below it.
std::string cut(const std::string& page, std::size_t rows, const std::string& below) {
  const auto lines = lines_of(page);
  const std::size_t room = std::max<std::size_t>(rows, 3) - 2;
  std::string out;
  for (std::size_t i = 0; i < std::min(lines.size(), room); ++i) out += std::string(lines[i]) + "\n";
  return out + below;
}

class Watcher {
 public:
  explicit Watcher(const StatusRequest& request) : request_(request), timer_(loop_) {}

  int run() {
    const process::SignalSource signals(loop_, {SIGTERM, SIGINT, SIGHUP, SIGQUIT},
                                        [this](const process::ReceivedSignal& signal) {
                                          // It is a failure only if no status was shown.
                                          if (!was_there_) exit_status_ = 128 + signal.number;
                                          loop_.stop();
                                        });
    ask();
    loop_.run();
    questions_.clear();
    if (has_drawn_) output::write_all(STDOUT_FILENO, "\n");
    return exit_status_;
  }

 private:
  // Asks one place after another until one answers: where the job was last, where the user says it is, and at its
  // nodes' peer ports.
  void ask() {
    questions_.clear();
    problem_.reset();
    places_.clear();
    if (last_) add(*last_);
    add(request_.place);
    for (const HttpPlace& peer : peers_) add(peer);
    ask_next();
  }

  void add(const HttpPlace& place) {
    if (std::ranges::find(places_, place) == places_.end()) places_.push_back(place);
  }

  void ask_next() {
    if (places_.empty()) return end_round(show_problem(*problem_));
    const HttpPlace place = std::move(places_.front());
    places_.pop_front();
    hops_ = 0;
    ask_at(place);
  }

  void ask_at(const HttpPlace& place) {
    const std::string job = request_.run_id.empty() ? "" : "?job=" + net::http::percent_encoded(request_.run_id);
    // An exchange must not be destroyed by its own answer.
    questions_.push_back(std::make_unique<HttpExchange>(
        loop_, place, net::http::get_request(place.text(), "/status" + job, request_.key),
        [this, place](Result<HttpAnswer> answer) {
          const auto led_to = answer && answer->status == 307 ? place_of_url(answer->location) : std::nullopt;
          if (led_to && hops_++ < kMostHops) return ask_at(*led_to);
          answered(answer ? document_of(*answer, place) : std::unexpected(std::move(answer.error())), place);
        }));
  }

  void answered(Result<Json> answer, const HttpPlace& place) {
    if (answer && !status::has_job(*answer, request_.run_id)) {
      answer = fail(format("--rdzv-id={}", printable(request_.run_id)),
                    format("there is no job of that name at {}", place.text()), "leave it out to see all jobs");
    }
    if (!answer) {
      if (!problem_) problem_ = std::move(answer.error());
      return ask_next();
    }
    last_ = place;
    find_peers(*answer);
    end_round(show(*answer));
  }

  void find_peers(const Json& document) {
    std::vector<HttpPlace> found;
    for (const std::string& address : status::peer_addresses(document, request_.run_id)) {
      const auto place = place_of(address);
      if (place && found.size() < kMostPeerPorts) found.push_back(*place);
    }
    if (!found.empty()) peers_ = std::move(found);
  }

  void end_round(bool shown) {
    if (!shown || !request_.watch) return loop_.stop();
    timer_.start(kEveryMs, [this] { ask(); });
  }

  // Returns false if stdout cannot be written.
  bool show(const Json& document) {
    was_there_ = true;
    const Screen where = screen();
    if (request_.json) return write(document.dump() + "\n");
    const std::string page = status::status_page(document, request_.run_id, where.columns);
    if (!request_.watch) return write(page);
    return where.is_terminal ? draw(page, where) : write(status::status_line(document, request_.run_id));
  }

  bool show_problem(const Error& error) {
    const Screen where = screen();
    if (!request_.watch || !was_there_) {
      exit_status_ = 1;
      log::critical("status", error.text());
      return false;
    }
    if (where.is_terminal && !request_.json) return draw(wrap(error.text(), where.columns, 4) + "\n", where);
    log::warning("status", error.text());
    return true;
  }

  // Draws the page over the one before it.
  bool draw(const std::string& page, const Screen& where) {
    constexpr std::string_view kHome = "\x1b[H\x1b[J";
    has_drawn_ = true;
    const std::string below = format("(updated every {} s; press Ctrl-C to quit)", kEveryMs / 1000);
    return write(std::string(kHome) + cut(page, where.rows, below));
  }

  bool write(const std::string& text) {
    const int error = output::write_all(STDOUT_FILENO, text);
    if (error == 0) return true;
    exit_status_ = 1;
    log::critical("status", Error{"stdout", errno_text(error), ""}.text());
    return false;
  }

  const StatusRequest& request_;
  net::Loop loop_;
  net::Timer timer_;
  std::vector<std::unique_ptr<HttpExchange>> questions_;  // since the timer fired
  std::deque<HttpPlace> places_;                          // that are still to be asked
  std::optional<HttpPlace> last_;                         // where the status was got last
  std::vector<HttpPlace> peers_;                          // of the nodes, as the status said last
  std::optional<Error> problem_;                          // the first one since the timer fired
  int hops_ = 0;
  bool was_there_ = false;  // a status was shown at least once
  bool has_drawn_ = false;
  int exit_status_ = 0;
};

}  // namespace

int print_status(const StatusRequest& request) {
  if (const Status prepared = process::prepare_process("--status", 0); !prepared) {
    log::critical(prepared.error().text());
    return 1;
  }
  return Watcher(request).run();
}

}  // namespace elastic::run
