// cpp/base/host_device.hpp - marks functions that a compiler for devices compiles for both sides

#pragma once

#ifdef __CUDACC__
#define GPUTEXT_HOST_DEVICE __host__ __device__
#else
#define GPUTEXT_HOST_DEVICE
#endif
