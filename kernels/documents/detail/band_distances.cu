#include "kernels/documents/detail/band_distances.cuh"

#include <algorithm>

namespace gputext::gpu {
namespace {

__device__ inline std::uint64_t now_nanoseconds() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

/// One warp's work. Time goes by epochs of kRows + 1 steps: in each, every group opens the next
/// block of its rows. Block b meets column j at step b + j + slack - 1 of its pair.
template <int kDigits, int kWords>
class BandWarp {
public:
    static constexpr int kRows = 64 * kWords;
    static constexpr int kSteps = kRows + 1;
    using Tables = MatchTables<kDigits, kWords>;
    using Code = SymbolCode<kDigits>;

    struct Shared {
        Tables matches;
        Code codes[1];  // as many as codes_of says
    };

    __host__ __device__ static constexpr unsigned codes_of(BandShape shape) {
        return (kRows + shape.lanes) * shape.groups();
    }
    static constexpr int shared_bytes(BandShape shape) {
        return static_cast<int>(sizeof(Tables) + codes_of(shape) * sizeof(Code));
    }

    __device__ BandWarp(Shared& shared, unsigned which, const PairTask* tasks, TaskLists lists,
                        std::uint32_t* distances)
        : shared_(shared), which_(which), tasks_(tasks), lists_(lists), distances_(distances) {
        const BandShape shape = band_shape(which, kDigits > 2);
        lane_ = threadIdx.x;
        lanes_ = static_cast<int>(shape.lanes);
        group_ = lane_ / shape.lanes;
        usable_ = group_ < shape.groups();
        place_ = static_cast<int>(lane_ - group_ * shape.lanes);
        first_lane_ = static_cast<int>(group_ * shape.lanes);
        above_lane_ = place_ == 0 ? first_lane_ + lanes_ - 1 : static_cast<int>(lane_) - 1;
        if (!usable_) above_lane_ = static_cast<int>(lane_);
        codes_ = shared.codes + (usable_ ? group_ : 0) * (kRows + shape.lanes);
        // Groups without a pair look up symbols too.
        for (unsigned i = lane_; i < codes_of(shape); i += kWarp) shared.codes[i] = Code::none();
    }

    __device__ void run(std::uint64_t deadline) {
        for (;;) {
            if (__any_sync(kAllLanes, usable_ && !busy_)) take_tasks(now_nanoseconds() < deadline);
            if (!__any_sync(kAllLanes, busy_)) return;
            __syncwarp();
            open_blocks();
            load_codes();
            __syncwarp();
            run_epoch();
            leave_top_block();
        }
    }

private:
    /// Idle groups take a pair each.
    __device__ void take_tasks(bool may) {
        const bool idle = usable_ && !busy_;
        std::uint32_t task = kAbove;
        if (idle && place_ == 0 && may) {
            const std::uint32_t at = atomicAdd(lists_.taken + which_, 1);
            if (at < lists_.counts[which_])
                task = lists_.tasks[std::size_t{which_} * lists_.room + at];
        }
        task = __shfl_sync(kAllLanes, task, usable_ ? first_lane_ : lane_);
        if (idle && task != kAbove) begin(task);
    }

    __device__ void begin(std::uint32_t task) {
        task_ = task;
        pair_ = tasks_[task];
        rows_ = static_cast<int>(pair_.rows.count);
        columns_ = static_cast<int>(pair_.columns.count);
        limit_ = static_cast<int>(min(pair_.limit, band_shape(which_, kDigits > 2).limit()));
        slack_ = (limit_ - (columns_ - rows_)) / 2;
        last_block_ = (rows_ - 1) / kRows;
        const int last_step = columns_ + last_block_ + slack_ - 1;
        last_epoch_ = last_step / kSteps;
        end_step_ = last_step % kSteps + 1;
        // Before the first column nothing happens: the first blocks are opened together.
        epoch_ = slack_ / kSteps;
        opened_ = 0;
        base_value_ = 0;
        base_column_ = 0;
        busy_ = true;
        step_ = 0;
    }

    /// Opens every block up to this epoch's.
    __device__ void open_blocks() {
        const int due = busy_ ? epoch_ + 1 : opened_;
        while (__any_sync(kAllLanes, opened_ < due)) {
            __syncwarp();
            if (opened_ < due) clear_block(opened_);
            __syncwarp();
            if (opened_ < due) {
                fill_block(opened_);
                ++opened_;
            }
        }
        age_ = busy_ ? (epoch_ - place_) % lanes_ : 0;
        if (age_ < 0) age_ += lanes_;  // of a lane that waits for its first block
        top_age_ = min(epoch_, lanes_ - 1);
    }

    __device__ void clear_block(int block) {
        const int owner = block % lanes_;
        for (unsigned i = place_; i < Tables::kEntries; i += lanes_)
            shared_.matches.clear(first_lane_ + owner, i);
        if (place_ == owner) {
            state_.reset();
            step_ = 0;
        }
    }

    __device__ void fill_block(int block) {
        const unsigned owner = first_lane_ + block % lanes_;
        const int begin = block * kRows;
        const int count = min(kRows, rows_ - begin);
        for (int row = place_; row < count; row += lanes_)
            shared_.matches.add(owner, row, Code::of(pair_.rows[begin + row]));
    }

    /// The column that the newest block meets at this epoch's first step.
    __device__ int first_column() const { return kRows * epoch_ - slack_ + 1; }

    /// Loads the codes that any lane of the group meets in this epoch. Lane by lane each column is
    /// one on with every block up.
    __device__ void load_codes() {
        if (!busy_) return;
        const int first = first_column();
        for (int i = place_; i < kRows + lanes_; i += lanes_) {
            const int column = first + i;
            codes_[i] = column >= 1 && column <= columns_ ? Code::of(pair_.columns[column - 1])
                                                          : Code::none();
        }
    }

    /// Steps in stretches: one ends where a pair begins its first column or has met its last.
    __device__ void run_epoch() {
        const bool top = age_ == top_age_;
        const int begins = busy_ ? 1 - first_column() - top_age_ : 0;
        const bool ends = busy_ && epoch_ == last_epoch_;
        int step = 0;
        while (step < kSteps) {
            int until = kSteps;
            if (busy_ && begins > step) until = min(until, begins);
            if (ends && end_step_ > step) until = min(until, end_step_);
            until = warp_min(until);
            run_steps(step, until, top, busy_ && step >= begins ? kStepUp : 0);
            step = until;
            if (__any_sync(kAllLanes, ends && step == end_step_)) finish(ends && step == end_step_);
        }
        if (ends) busy_ = false;
    }

    __device__ void run_steps(int step, int until, bool top, RowStep at_top) {
        const Code* codes = codes_ + age_;
#pragma unroll 4
        for (; step < until; ++step) {
            std::uint32_t equal[2 * kWords];
            shared_.matches.match(lane_, codes[step], equal);
            const RowStep above = __shfl_sync(kAllLanes, step_, above_lane_);
            step_ = state_.advance(equal, top ? at_top : above);
        }
        column_ = first_column() + age_ + until - 1;
    }

    /// The value of this lane's last row in the column that it met last. Down the group each
    /// lane's column is one before that of the lane above it.
    __device__ int value_of_last_row() const {
        const RowStep above = __shfl_sync(kAllLanes, step_, above_lane_);
        const int order = top_age_ - age_;  // 0 for the top block
        int value = state_.rise_from(0) +
                    (order == 0 ? base_value_ + column_ - base_column_ : -value_of(above));
        for (int distance = 1; distance < lanes_; distance *= 2) {
            int from = place_ - distance;
            if (from < 0) from += lanes_;
            const int theirs = __shfl_sync(kAllLanes, value,
                                           usable_ ? first_lane_ + from : static_cast<int>(lane_));
            if (order >= distance) value += theirs;
        }
        return value;
    }

    /// Finishes pairs that have met their last column.
    __device__ void finish(bool ended) {
        const int value = value_of_last_row();
        if (!ended || epoch_ - age_ != last_block_) return;
        const int used = rows_ - last_block_ * kRows;
        const int distance = value - state_.rise_from(used);
        if (distance <= limit_)
            distances_[task_] = distance;
        else
            give_up(columns_);
    }

    /// After the epoch: values above the next top block grow by one a column from here on.
    __device__ void leave_top_block() {
        if (!__any_sync(kAllLanes, busy_)) return;
        const bool leaves = busy_ && epoch_ >= lanes_ - 1;
        const int value = value_of_last_row();
        const bool hopeful = usable_ && within_reach(value);
        const unsigned members = __ballot_sync(kAllLanes, hopeful);
        const unsigned mine = (lanes_ == 32 ? kAllLanes : (1u << lanes_) - 1) << first_lane_;
        const int top_place = (epoch_ - top_age_ + lanes_) % lanes_;
        const int top = usable_ ? first_lane_ + top_place : static_cast<int>(lane_);
        const int base = __shfl_sync(kAllLanes, value - value_of(step_), top);
        const int column = __shfl_sync(kAllLanes, column_ - 1, top);
        if (leaves) {
            base_value_ = base;
            base_column_ = column;
            if ((members & mine) == 0) {
                if (place_ == top_place) give_up(column);
                busy_ = false;
            }
        }
        ++epoch_;
    }

    /// False only if a path through the lane's rows certainly costs more than the limit. Values of
    /// neighboring rows differ by at most 1, as do the edits from there to the end, which are
    /// fewest at the row on the last cell's diagonal: the row nearest to that has the smallest sum.
    /// A path may step between two lanes' columns diagonally, past both: hence the 2.
    __device__ bool within_reach(int value) const {
        const int block = epoch_ - age_;
        if (!busy_ || block < 0 || block > last_block_) return false;
        const int top = block * kRows + 1;
        const int on_diagonal = rows_ - columns_ + column_;
        const int nearest = min(max(on_diagonal, top), top + kRows - 1);
        const int there = value - state_.rise_from(nearest - top + 1);
        return there + abs(on_diagonal - nearest) <= limit_ + 2;
    }

    /// Called by one lane of the group.
    __device__ void give_up(int column) {
        const auto limit = static_cast<std::uint32_t>(limit_);
        if (limit >= pair_.limit) {
            distances_[task_] = kAbove;
            return;
        }
        // Edits are spread evenly more often than not: how far these ones reached tells about how
        // many there are.
        const float guess = 1.15f * static_cast<float>(limit_) * static_cast<float>(columns_) /
                            static_cast<float>(max(column, 1));
        const float most = static_cast<float>(pair_.limit);
        const std::uint32_t wanted = guess < most ? static_cast<std::uint32_t>(guess) : pair_.limit;
        lists_.add(class_for(wanted, pair_, which_ + 1, lists_.usable), task_);
    }

    Shared& shared_;
    unsigned which_;
    const PairTask* tasks_;
    TaskLists lists_;
    std::uint32_t* distances_;
    Code* codes_;

    unsigned lane_, group_;
    int lanes_, place_, first_lane_, above_lane_;
    bool usable_;
    bool busy_ = false;

    // State of the group's pair.
    PairTask pair_{};
    std::uint32_t task_ = 0;
    int rows_ = 0, columns_ = 0, limit_ = 0, slack_ = 0;
    int last_block_ = 0, last_epoch_ = 0, end_step_ = 0;
    int epoch_ = 0, opened_ = 0, top_age_ = 0;
    int base_value_ = 0, base_column_ = 0;  // of the row above the top block

    // State of the lane.
    LaneRows<kWords> state_{};
    RowStep step_ = 0;
    int age_ = 0;     // epochs since the lane's block was opened
    int column_ = 0;  // that it met last
};

template <int kDigits, int kWords>
__global__ void __launch_bounds__(kWarp)
    band_distances(unsigned which, const PairTask* tasks, TaskLists lists, std::uint32_t* distances,
                   std::uint64_t nanoseconds) {
    extern __shared__ std::uint64_t memory[];
    using Warp = BandWarp<kDigits, kWords>;
    Warp warp(*reinterpret_cast<typename Warp::Shared*>(memory), which, tasks, lists, distances);
    warp.run(now_nanoseconds() + nanoseconds);
}

template <int kDigits, int kWords>
Status launch(unsigned which, const PairTask* tasks, TaskLists lists, std::uint32_t* distances,
              std::uint64_t nanoseconds, cudaStream_t stream) {
    const auto kernel = band_distances<kDigits, kWords>;
    const int bytes = BandWarp<kDigits, kWords>::shared_bytes(band_shape(which, kDigits > 2));
    int device = 0, processors = 0, blocks = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kWarp, bytes);
    if (error != cudaSuccess) return cuda_status(error, "planning the verification");
    kernel<<<std::max(1, processors * blocks), kWarp, bytes, stream>>>(which, tasks, lists,
                                                                       distances, nanoseconds);
    return cuda_status(cudaGetLastError(), "verifying pairs");
}

}  // namespace

Status launch_band_distances(unsigned which, bool wide, const PairTask* tasks, TaskLists lists,
                             std::uint32_t* distances, std::uint64_t nanoseconds,
                             cudaStream_t stream) {
    const unsigned words = band_shape(which, wide).words;
    const auto run = wide         ? launch<8, 1>
                     : words == 1 ? launch<2, 1>
                     : words == 2 ? launch<2, 2>
                                  : launch<2, 4>;
    return run(which, tasks, lists, distances, nanoseconds, stream);
}

}  // namespace gputext::gpu
