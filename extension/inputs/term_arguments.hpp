// extension/inputs/term_arguments.hpp - arguments shared by the functions of texts

#pragma once

#include "extension/base/postgres.hpp"

#include "extension/inputs/arguments.hpp"

namespace gputext {

/// The parameter config: a text search configuration; raises an error when there is no such one.
Oid config_argument(const Arguments& arguments);

}  // namespace gputext
