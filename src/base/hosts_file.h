#pragma once

#include <string>
#include <string_view>

namespace elastic {

// The fully qualified name that a hosts file (hosts(5), as text) has for `host`: of the first line that names it
// and has a name with a dot, the first such name. Names that begin with "localhost" do not count. Empty if there is
// none.
std::string full_name_in_hosts(std::string_view hosts, std::string_view host);

}  // namespace elastic
