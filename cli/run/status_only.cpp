#include "cli/run/status_only.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/base/json.h"
#include "src/base/log.h"
#include "src/base/result.h"
#include "src/base/screen_text.h"
#include "src/base/strangers.h"
#include "src/base/text.h"
#include "src/net/http/reader.h"
#include "src/net/http/response.h"
#include "src/net/loop.h"
#include "src/net/names.h"
#include "src/net/tcp.h"
#include "src/output/write_all.h"
#include "src/process/process_state.h"
#include "src/process/signal_source.h"
#include "src/status/status_page.h"

namespace elastic::run {
namespace {

constexpr std::int64_t kResolveMs = 5'000;
constexpr std::int64_t kConnectMs = 5'000;
constexpr std::int64_t kAnswerMs = 10'000;
constexpr std::int64_t kEveryMs = 2'000;

std::string endpoint_of(const StatusRequest& request) {
  return request.host.contains(':') ? format("[{}]:{}", request.host, request.port)
                                    : format("{}:{}", printable(request.host), request.port);
}

// One request for /status: looks up the host, connects, and reads the document.
class Question {
 public:
  using OnDone = std::function<void(Result<Json>)>;

  Question(net::Loop& loop, const StatusRequest& request, OnDone on_done)
      : loop_(loop), request_(request), on_done_(std::move(on_done)), resolver_(loop), patience_(loop) {
    resolver_.resolve(request_.host, kResolveMs, [this](Result<std::vector<std::string>> found) {
      if (!found) return fail_with(found.error().reason, "name the host that has the coordinator, or --http-port");
      addresses_ = std::move(*found);
      std::ranges::reverse(addresses_);
      try_next();
    });
  }

 private:
  void try_next() {
    if (addresses_.empty()) {
      return fail_with(problem_,
                       "is a job with that endpoint running? name its --rdzv-endpoint, or a node's --http-port");
    }
    const std::string address = std::move(addresses_.back());
    addresses_.pop_back();
    connector_ = std::make_unique<net::Connector>(loop_, address, request_.port, kConnectMs,
                                                  [this](Result<std::unique_ptr<net::Stream>> stream) {
                                                    const std::unique_ptr<net::Connector> done = std::move(connector_);
                                                    if (stream) return ask(std::move(*stream));
                                                    problem_ = stream.error().reason;
                                                    try_next();
                                                  });
  }

  void ask(std::unique_ptr<net::Stream> stream) {
    stream_ = std::move(stream);
    stream_->start({.on_data = [this](std::span<const std::uint8_t> bytes) { read(bytes); },
                    .on_end = [this] { judge(reader_.end()); }});
    stream_->write(net::http::get_request(endpoint_of(request_), "/status", request_.key));
    patience_.start(kAnswerMs, [this] {
      fail_with(format("it accepted the connection, and did not answer within {} s", kAnswerMs / 1000), kNotOurs);
    });
  }

  void read(std::span<const std::uint8_t> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!std::exchange(has_spoken_, true)) {
      const auto stranger = recognised(text);
      if (stranger != Stranger::kHttpAnswer && stranger != Stranger::kHttp) {
        return fail_with(stranger ? format("it speaks {}", name_of(*stranger))
                                  : "it does not speak HTTP (" + first_bytes_text(text) + ")",
                         kNotOurs);
      }
    }
    judge(reader_.take(bytes));
  }

  void judge(net::http::ResponseReader::Step step) {
    using Step = net::http::ResponseReader::Step;
    if (step == Step::kNeedMore) return;
    if (step == Step::kRefused) return fail_with(reader_.problem(), kNotOurs);
    if (reader_.server() != net::http::kServerName) {
      return fail_with(format("it is not elastic-run (the HTTP server calls itself {})",
                              reader_.server().empty() ? "nothing" : printable(reader_.server(), 60)),
                       kNotOurs);
    }
    if (reader_.status() == 401) {
      return fail_with("the job has another token",
                       "set ELASTIC_RUN_TOKEN, or give --rdzv-conf=token_file=FILE, as its nodes do");
    }
    if (reader_.status() != 200) {
      return fail_with(format("it answers {}: {}", reader_.status(), printable(trim(reader_.body()))),
                       "try again later");
    }
    constexpr std::size_t kMostLevels = 20;
    constexpr std::size_t kMostMembers = 1000;
    if (const std::string over = json_over_bounds(reader_.body(), kMostLevels, kMostMembers); !over.empty()) {
      return fail_with(over, kNotOurs);
    }
    auto json = Json::parse(reader_.body(), "its status");
    if (!json) return fail_with(json.error().text(), kNotOurs);
    if (!status::is_status(*json)) return fail_with("its /status is not elastic-run's", kNotOurs);
    done(std::move(*json));
  }

  void fail_with(std::string reason, std::string remedy) {
    done(fail(format("--status={}", endpoint_of(request_)), std::move(reason), std::move(remedy)));
  }
  // Ends the request; the callback may destroy this object.
  void done(Result<Json> result) {
    patience_.stop();
    connector_.reset();
    stream_.reset();
    if (const OnDone call = std::exchange(on_done_, nullptr)) call(std::move(result));
  }

  static constexpr const char* kNotOurs = "name the endpoint of a job, or the --http-port of a node";

  net::Loop& loop_;
  const StatusRequest& request_;
  OnDone on_done_;
  net::Resolver resolver_;
  std::vector<std::string> addresses_;  // tried from the last to the first
  std::string problem_ = "it has no address";
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Stream> stream_;
  net::http::ResponseReader reader_;
  bool has_spoken_ = false;
  net::Timer patience_;
};

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
    question_.reset();
    if (has_drawn_) output::write_all(STDOUT_FILENO, "\n");
    return exit_status_;
  }

 private:
  void ask() {
    question_ =
        std::make_unique<Question>(loop_, request_, [this](Result<Json> answer) { answered(std::move(answer)); });
  }

  void answered(Result<Json> answer) {
    if (answer && !status::has_job(*answer, request_.run_id)) {
      answer =
          fail(format("--rdzv-id={}", printable(request_.run_id)),
               format("there is no job of that name at {}", endpoint_of(request_)), "leave it out to see all jobs");
    }
    const bool shown = answer ? show(*answer) : show_problem(answer.error());
    // This is called by the Question, which must not be destroyed here.
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
  std::unique_ptr<Question> question_;
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
