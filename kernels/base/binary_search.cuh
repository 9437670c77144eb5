// kernels/base/binary_search.cuh - binary searches by one thread

#pragma once

namespace gputext::gpu {

/// The first of the numbers [begin, end) for which `holds` is false, or `end`. It is true for none
/// behind one for which it is false.
template <class Number, class Holds>
__host__ __device__ inline Number partition_point(Number begin, Number end, Holds&& holds) {
    while (begin < end) {
        const Number middle = begin + (end - begin) / 2;
        if (holds(middle))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/// The part that has the element: the last one of `parts` that begins at or before it, or the
/// first.
template <class Place, class Number>
__device__ inline Number part_with(const Place* begins, Number parts, Place element) {
    return partition_point(Number{1}, parts, [=](Number part) { return begins[part] <= element; }) -
           1;
}

}  // namespace gputext::gpu
