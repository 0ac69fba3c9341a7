#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace troupe::model {

/// Which characters a property has: those of the Unicode version built into PCRE2, or the newest ones as well. The
/// second is slower, and needed only for texts that hold such a character.
enum class regex_tables { built_in, newest };

/// An Oniguruma expression in PCRE2's syntax (for UTF, UCP and multi-line anchors), or why it cannot be said there.
result<std::string> translate_regex(std::string_view oniguruma, regex_tables tables, std::string_view place);

}  // namespace troupe::model
