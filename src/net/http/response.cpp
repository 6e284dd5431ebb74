#include "src/net/http/response.h"

#include <utility>

#include "src/base/text.h"

namespace elastic::net::http {
namespace {

// Headers that belong to the answer's status.
std::string headers_of(const Response& response) {
  switch (response.status) {
    case 307: return format("Location: {}\r\n", response.location);
    case 401: return "WWW-Authenticate: Bearer realm=\"elastic-run\"\r\n";
    case 405: return format("Allow: {}\r\n", response.allow);
    case 503: return "Retry-After: 1\r\n";
    default: return "";
  }
}

}  // namespace

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 307: return "Temporary Redirect";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 414: return "URI Too Long";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "";
  }
}

Response plain(int status, std::string_view line) {
  return {.status = status, .body = std::make_shared<const std::string>(std::string(line) + "\n")};
}

Response redirect(std::string location, std::string_view line) {
  Response response = plain(307, line);
  response.location = std::move(location);
  return response;
}

std::string bytes_of(const Response& response, bool is_head) {
  std::string bytes = format(
      "HTTP/1.1 {} {}\r\nServer: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\n{}{}\r\n",
      response.status, reason_of(response.status), kServerName, response.content_type, response.body->size(),
      headers_of(response), response.keep_alive ? "" : "Connection: close\r\n");
  if (!is_head) bytes += *response.body;
  return bytes;
}

namespace {

// `header` is a whole line, or empty.
std::string request(std::string_view method, std::string_view host, std::string_view target, std::string_view header) {
  return format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: elastic-run\r\nConnection: close\r\n{}\r\n", method, target,
                host, header);
}

}  // namespace

std::string get_request(std::string_view host, std::string_view path, std::string_view token) {
  return request("GET", host, path, token.empty() ? std::string() : format("Authorization: Bearer {}\r\n", token));
}

std::string post_request(std::string_view host, std::string_view target, std::string_view order) {
  return request("POST", host, target, format("Content-Length: 0\r\nElastic-Run-Order: {}\r\n", order));
}

}  // namespace elastic::net::http
