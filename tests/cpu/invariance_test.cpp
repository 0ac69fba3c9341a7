#include <gtest/gtest.h>

#include "cpu/isa.hpp"
#include "cpu/kernels/kernels.hpp"
#include "runner.hpp"

/// A row's logits have the same bits in any batch, chunk, number of threads and instruction set.
namespace troupe::cpu {
namespace {

using engine::precision;
using logit_rows = std::vector<std::vector<float>>;

class Invariance : public testing::TestWithParam<precision> {
 protected:
  static constexpr std::uint32_t length = 300;  // More than a segment of keys.
  weight_source source_ = test::source(test::make_model(test::small_sparse_spec(), 7));
  std::uint32_t vocab_ = source_.spec.vocab;
  test::sequence subject_ = test::make_sequence(length, 0, 11, vocab_);

  logit_rows reference() { return test::run_alone(*test::make_backend(source_, GetParam()), subject_, 64, vocab_); }
};

INSTANTIATE_TEST_SUITE_P(Precisions, Invariance,
                         testing::Values(precision::fp32, precision::bf16, precision::int8, precision::int4),
                         [](const auto& tested) { return std::string(engine::to_string(tested.param)); });

TEST_P(Invariance, HoldsForEveryChunkSize) {
  const auto expected = reference();
  ASSERT_EQ(expected.size(), length);
  auto backend = test::make_backend(source_, GetParam(), best_isa());
  for (const std::uint32_t chunk : {1U, 3U, 7U, 16U, 100U, 300U}) {
    ASSERT_EQ(test::run_alone(*backend, subject_, chunk, vocab_), expected) << "chunks of " << chunk;
  }
}

TEST_P(Invariance, HoldsForEveryInstructionSetAndNumberOfThreads) {
  const auto expected = reference();
  for (const isa tier : {isa::scalar, isa::avx2, isa::avx512}) {
    if (!supported(tier)) continue;
    // The reference is scalar on one thread.
    const auto numbers = tier == isa::scalar ? std::vector<std::uint32_t>{2} : std::vector<std::uint32_t>{1, 2, 3};
    for (const std::uint32_t threads : numbers) {
      auto backend = test::make_backend(source_, GetParam(), tier, threads);
      ASSERT_EQ(test::run_alone(*backend, subject_, 50 * threads, vocab_), expected)
          << to_string(tier) << ", " << threads << " threads";
    }
  }
}

TEST_P(Invariance, HoldsInEveryBatch) {
  const auto expected = reference();
  for (const std::uint32_t others : {1U, 2U, 6U, 7U, 30U, 31U, 63U}) {
    auto backend = test::make_backend(source_, GetParam(), best_isa(), 2, 1024);
    std::vector<test::sequence> all{subject_};
    for (std::uint32_t i = 0; i < others; ++i) {
      const std::uint32_t size = 5 + i * 17 % 90;
      all.push_back(test::make_sequence(size, 32 + i * 8, 100 + i, vocab_));
    }
    std::vector<test::sequence*> batch;
    std::vector<std::uint32_t> counts;
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      // The subject moves through the batch and through the step.
      batch.insert(batch.begin() + (i % 2 == 0 ? 0 : static_cast<std::ptrdiff_t>(batch.size())), &all[i]);
      counts.push_back(1 + i * 5 % 40);
    }
    while (all[0].done < length && !HasFatalFailure()) test::advance(*backend, batch, counts, vocab_);
    ASSERT_EQ(all[0].logits, expected) << others << " other sequences";
  }
}

TEST(WideHeads, AreNormedEachForItself) {
  auto spec = test::small_sparse_spec();
  spec.attention.head_dim = 520;  // no whole lanes of 16, and 4 heads are rows without a gap
  spec.attention.heads = 4;
  spec.attention.qk_norm = model::qk_norm_kind::per_head;
  const weight_source source = test::source(test::make_model(spec, 7));
  const auto subject = test::make_sequence(20, 0, 11, spec.vocab);
  const auto alone = test::run_alone(*test::make_backend(source, precision::fp32), subject, 1, spec.vocab);
  EXPECT_EQ(test::run_alone(*test::make_backend(source, precision::fp32), subject, 20, spec.vocab), alone);
}

TEST(Avx512, RunsWhereTheMachineHasIt) {
  if (!supported(isa::avx512)) GTEST_SKIP() << "this machine has no AVX-512 VNNI: the tier was compiled, not run";
  EXPECT_EQ(kernels_of(isa::avx512).tier, isa::avx512);
}

}  // namespace
}  // namespace troupe::cpu
