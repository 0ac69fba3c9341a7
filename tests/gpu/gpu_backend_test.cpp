#include "gpu/gpu_backend.hpp"

#include <gtest/gtest.h>

namespace troupe::gpu {
namespace {

TEST(GpuBackend, SaysThatThisBuildHasNone) {
  const auto backend = make_gpu_backend(nullptr, {});
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().kind, error_kind::unsupported);
  EXPECT_NE(backend.error().message.find("CUDA"), std::string::npos);
}

}  // namespace
}  // namespace troupe::gpu
