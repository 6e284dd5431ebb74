#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace elastic::net::http {

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
// The value of the header Server in each answer of ours.
inline constexpr std::string_view kServerName = "elastic-run";

// The answer to a request. Many answers may share one body.
struct Response {
  int status = 200;
  std::string_view content_type = kPlainText;
  std::shared_ptr<const std::string> body = {};  // never null
  std::string_view allow = "GET, HEAD";          // of a 405: the methods that the path takes
  std::string location = {};                     // of a 307: the URL where the same is to be asked
  bool keep_alive = true;
};

// The answer to a request is there at once, or it comes later: `begin` is called once, with the function that is to get
// the answer, at once or later.
struct Later {
  std::function<void(std::function<void(Response)>)> begin;
};
using Reply = std::variant<Response, Later>;

// An answer of one line of plain text. Where the status is not 200 it says what is wrong and what to do.
Response plain(int status, std::string_view line);

// An answer that leads the client to this URL, where it is to repeat its request.
Response redirect(std::string location, std::string_view line);

// The answer's bytes; the answer to a HEAD has no body, and says how long that would be.
std::string bytes_of(const Response& response, bool is_head);

// "Not Found"; empty for a status that we never send.
std::string_view reason_of(int status);

// A GET request, without a body; `token` may be empty. The connection is to be closed after the answer.
std::string get_request(std::string_view host, std::string_view path, std::string_view token);
// The same with POST, for an operator's order: `order` is the value of its header, not empty.
std::string post_request(std::string_view host, std::string_view target, std::string_view order);

}  // namespace elastic::net::http
