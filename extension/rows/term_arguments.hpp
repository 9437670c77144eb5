// extension/rows/term_arguments.hpp - arguments shared by the functions of texts

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

namespace gputext {

/// A text search configuration that exists; raises an error for others and null.
Oid config_argument(FunctionCallInfo fcinfo, int argument);

/// At least 1; raises an error for others and null.
std::uint32_t min_document_frequency_argument(FunctionCallInfo fcinfo, int argument);

}  // namespace gputext
