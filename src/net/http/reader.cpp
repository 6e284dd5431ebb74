#include "src/net/http/reader.h"

#include <http_parser.h>

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/text.h"
#include "src/net/limits.h"

namespace elastic::net::http {
namespace {

// Makes http-parser's callbacks of a state's members; each returns 0 to continue.
template <class State>
http_parser_settings callbacks() {
  http_parser_settings settings{};
  settings.on_url = [](http_parser* p, const char* at, std::size_t size) {
    return static_cast<State*>(p->data)->url({at, size});
  };
  settings.on_header_field = [](http_parser* p, const char* at, std::size_t size) {
    return static_cast<State*>(p->data)->name({at, size});
  };
  settings.on_header_value = [](http_parser* p, const char* at, std::size_t size) {
    return static_cast<State*>(p->data)->value({at, size});
  };
  settings.on_headers_complete = [](http_parser* p) { return static_cast<State*>(p->data)->head_ends(); };
  settings.on_body = [](http_parser* p, const char* at, std::size_t size) {
    return static_cast<State*>(p->data)->body_part({at, size});
  };
  settings.on_message_complete = [](http_parser* p) { return static_cast<State*>(p->data)->ends(); };
  return settings;
}

const char* text_of(Bytes bytes) { return reinterpret_cast<const char*>(bytes.data()); }

// Keeps the value of one header field of a message.
class OneHeader {
 public:
  explicit OneHeader(std::string_view wanted) : wanted_(wanted) {}

  void name(std::string_view part) {
    if (std::exchange(in_value_, false)) name_.clear();
    if (name_.size() <= wanted_.size()) name_ += part;
  }
  void value(std::string_view part) {
    in_value_ = true;
    if (lower(name_) == wanted_) value_ += part;
  }
  void clear() {
    name_.clear();
    value_.clear();
    in_value_ = false;
  }
  std::string& text() { return value_; }

 private:
  std::string_view wanted_;
  std::string name_;
  std::string value_;
  bool in_value_ = false;
};

}  // namespace

// --- Requests. ---------------------------------------------------------------------------------------

struct RequestReader::State {
  State() {
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = this;
  }

  int url(std::string_view part) {
    target += part;
    if (target.size() <= limits::kHttpTargetBytes) return 0;
    return refuse(414, format("the request target is longer than {} bytes; ask for /status or /metrics",
                              limits::kHttpTargetBytes));
  }
  int name(std::string_view part) {
    for (OneHeader* header : headers()) header->name(part);
    return 0;
  }
  int value(std::string_view part) {
    for (OneHeader* header : headers()) header->value(part);
    return 0;
  }
  int head_ends() {
    const auto method = static_cast<http_method>(parser.method);
    if (method != HTTP_GET && method != HTTP_HEAD && method != HTTP_POST) {
      return refuse(405, format("{} is not supported; use GET or HEAD", http_method_str(method)));
    }
    const bool has_length = (parser.flags & F_CONTENTLENGTH) != 0 && parser.content_length > 0;
    if (has_length || (parser.flags & F_CHUNKED) != 0) {
      return refuse(400, "requests with a body are not supported; send no body");
    }
    return 0;
  }
  int body_part(std::string_view) { return 0; }
  int ends() {
    if (refused) return 1;  // the head has been refused already
    complete = true;
    request = {.method = method(),
               .path = component(UF_PATH),
               .query = component(UF_QUERY),
               .target = target,
               .authorization = authorization.text(),
               .order = order.text(),
               .origin = origin.text(),
               .keep_alive = http_should_keep_alive(&parser) != 0};
    if (!request.path.starts_with('/'))
      return refuse(400, "the request target is not a path; ask for /status or /metrics");
    http_parser_pause(&parser, 1);
    return 0;
  }
  Method method() const {
    if (parser.method == HTTP_POST) return Method::kPost;
    return parser.method == HTTP_HEAD ? Method::kHead : Method::kGet;
  }
  // A part of the target; empty if it has none.
  std::string component(http_parser_url_fields field) const {
    http_parser_url parts;
    http_parser_url_init(&parts);
    if (http_parser_parse_url(target.data(), target.size(), 0, &parts) != 0) return {};
    if ((parts.field_set & (1U << field)) == 0) return {};
    return target.substr(parts.field_data[field].off, parts.field_data[field].len);
  }
  int refuse(int status, std::string text) {
    refused = true;
    refusal = {status, std::move(text)};
    return 1;
  }
  std::array<OneHeader*, 3> headers() { return {&authorization, &order, &origin}; }
  void begin() {
    if (!std::exchange(complete, false)) return;
    http_parser_pause(&parser, 0);
    head_bytes = 0;
    target.clear();
    for (OneHeader* header : headers()) header->clear();
  }

  http_parser parser{};
  std::size_t head_bytes = 0;
  std::string target;
  OneHeader authorization{"authorization"};
  OneHeader order{"elastic-run-order"};
  OneHeader origin{"origin"};
  bool complete = false;
  bool refused = false;
  Request request;
  Refusal refusal;
};

RequestReader::RequestReader() : state_(std::make_unique<State>()) {}
RequestReader::~RequestReader() = default;

RequestReader::Step RequestReader::next(Bytes& bytes) {
  static const http_parser_settings kCallbacks = callbacks<State>();
  State& state = *state_;
  if (state.refused) return Step::kRefused;
  state.begin();
  const std::size_t size = std::min(bytes.size(), limits::kHttpHeadBytes - state.head_bytes);
  const std::size_t taken = http_parser_execute(&state.parser, &kCallbacks, text_of(bytes), size);
  if (state.refused) return Step::kRefused;
  if (state.complete) {
    bytes = bytes.subspan(taken);
    return Step::kRequest;
  }
  const auto error = static_cast<http_errno>(state.parser.http_errno);
  if (error != HPE_OK || taken < size) {
    state.refuse(400, format("this is not an HTTP request: {}", http_errno_description(error)));
    return Step::kRefused;
  }
  bytes = bytes.subspan(taken);
  state.head_bytes += taken;
  if (state.head_bytes < limits::kHttpHeadBytes) return Step::kNeedMore;
  state.refuse(431, format("the request headers are longer than {} bytes; send fewer", limits::kHttpHeadBytes));
  return Step::kRefused;
}

const Request& RequestReader::request() const { return state_->request; }
const Refusal& RequestReader::refusal() const { return state_->refusal; }

// --- Answers. ----------------------------------------------------------------------------------------

struct ResponseReader::State {
  explicit State(std::size_t most) : most_body_bytes(most) {
    http_parser_init(&parser, HTTP_RESPONSE);
    parser.data = this;
  }

  int url(std::string_view) { return 0; }
  int name(std::string_view part) {
    server.name(part);
    location.name(part);
    return 0;
  }
  int value(std::string_view part) {
    server.value(part);
    location.value(part);
    return server.text().size() + location.text().size() > limits::kHttpHeadBytes ? 1 : 0;
  }
  int head_ends() { return 0; }
  int body_part(std::string_view part) {
    body += part;
    return body.size() > most_body_bytes ? 1 : 0;
  }
  int ends() {
    complete = true;
    http_parser_pause(&parser, 1);
    return 0;
  }

  http_parser parser{};
  OneHeader server{"server"};
  OneHeader location{"location"};
  std::size_t most_body_bytes;
  std::string body;
  bool complete = false;
  std::string problem;
};

ResponseReader::ResponseReader() : ResponseReader(limits::kHttpAnswerBytes) {}
ResponseReader::ResponseReader(std::size_t most_body_bytes) : state_(std::make_unique<State>(most_body_bytes)) {}
ResponseReader::~ResponseReader() = default;

ResponseReader::Step ResponseReader::read_bytes(Bytes bytes) {
  static const http_parser_settings kCallbacks = callbacks<State>();
  State& state = *state_;
  if (!state.problem.empty()) return Step::kRefused;
  if (!state.complete) http_parser_execute(&state.parser, &kCallbacks, text_of(bytes), bytes.size());
  if (state.complete) return Step::kComplete;
  const auto error = static_cast<http_errno>(state.parser.http_errno);
  if (error == HPE_OK) return Step::kNeedMore;
  state.problem = state.body.size() > state.most_body_bytes
                      ? format("its answer is longer than {} bytes", state.most_body_bytes)
                      : format("its answer is not HTTP/1.1: {}", http_errno_description(error));
  return Step::kRefused;
}

ResponseReader::Step ResponseReader::end() {
  const Step step = read_bytes({});  // an empty input tells http-parser of the end
  if (step != Step::kNeedMore) return step;
  state_->problem = "it closed the connection before its answer was complete";
  return Step::kRefused;
}

int ResponseReader::status() const { return state_->parser.status_code; }
const std::string& ResponseReader::server() const { return state_->server.text(); }
const std::string& ResponseReader::location() const { return state_->location.text(); }
const std::string& ResponseReader::body() const { return state_->body; }
const std::string& ResponseReader::problem() const { return state_->problem; }

}  // namespace elastic::net::http
