#include "cpp/link/outlier_factor.hpp"

namespace gputext {

Status OutlierFactorRequest::pack(Packed& packed, Stop stop) const {
    packed.message.parameters = parameters;
    GPUTEXT_TRY(packed.files.add(items, packed.message.items, stop));
    packed.expected.rows = packed.message.items.rows;
    return {};
}

}  // namespace gputext
