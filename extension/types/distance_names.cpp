#include "extension/types/distance_names.hpp"

extern "C" {
#include "catalog/dependency.h"
#include "commands/extension.h"
}

#include <cstring>

namespace gputext {
namespace {

struct NamedOperator {
    const char* name;
    Metric metric;
};

constexpr NamedOperator kOperators[] = {{"<->", Metric::euclidean},
                                        {"<=>", Metric::cosine},
                                        {"<#>", Metric::inner_product},
                                        {"<+>", Metric::manhattan}};

}  // namespace

std::optional<Metric> metric_of_operator(const char* name) {
    for (const NamedOperator& known : kOperators)
        if (name != nullptr && std::strcmp(name, known.name) == 0) return known.metric;
    return std::nullopt;
}

bool belongs_to_extension(Oid catalog, Oid object, const char* extension) {
    const Oid owner = getExtensionOfObject(catalog, object);
    const char* const name = OidIsValid(owner) ? get_extension_name(owner) : nullptr;
    return name != nullptr && std::strcmp(name, extension) == 0;
}

}  // namespace gputext
