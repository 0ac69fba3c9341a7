#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "cpu/activations.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/packed_matrix.hpp"
#include "cpu/thread_pool.hpp"

/// What every part of the model computes with: the kernels, the threads, and loops over rows and panels on both. Tasks
/// are cut by output panels and rows only, so who computes what never changes a result.
namespace troupe::cpu {

/// One product's destination: `out` holds rows of at least `panels * 16` floats, or `columns` where that is less.
struct product {
  const packed_matrix* weights = nullptr;
  float* out = nullptr;
  std::size_t stride = 0;
};

class compute {
 public:
  compute(const kernels& k, thread_pool& pool) : kernels_(k), pool_(pool) {}

  const kernels& kernel() const { return kernels_; }
  thread_pool& pool() const { return pool_; }

  /// Calls body(row) for each row: at once for a few rows, on the pool for many.
  template <class Body>
  void for_rows(std::uint32_t rows, Body&& body) const {
    constexpr std::uint32_t chunk = 4;
    if (rows <= chunk) {
      for (std::uint32_t r = 0; r < rows; ++r) body(r);
      return;
    }
    pool_.run(round_up(rows, chunk) / chunk, [&](std::uint32_t task, unsigned) {
      const std::uint32_t end = std::min(rows, (task + 1) * chunk);
      for (std::uint32_t r = task * chunk; r < end; ++r) body(r);
    });
  }

  /// Row r of each out = weights * x[rows[r]].
  void multiply(std::span<const product> products, const activation_view& x, std::span<const std::uint32_t> rows) const;

  /// 0, 1, 2, ...: the rows of a product over all rows. `count` is at most what the last `reserve_rows` named.
  std::span<const std::uint32_t> all_rows(std::uint32_t count) const { return std::span(identity_).first(count); }
  void reserve_rows(std::uint32_t count) {
    identity_.resize(std::max<std::size_t>(identity_.size(), count));
    std::iota(identity_.begin(), identity_.end(), 0U);
  }

  /// Panels [first, last) of one product on the calling thread; `out` points at the first panel's first column.
  void multiply_panels(const packed_matrix& weights, std::uint32_t first, std::uint32_t last, const activation_view& x,
                       std::span<const std::uint32_t> rows, float* out, std::size_t stride) const;

  /// Panels per task, so that each thread gets about four tasks out of `panels`.
  std::uint32_t panels_per_task(std::uint32_t panels) const {
    const std::uint32_t tasks = pool_.threads() * 4;
    return (panels + tasks - 1) / tasks;
  }

 private:
  const kernels& kernels_;
  thread_pool& pool_;
  std::vector<std::uint32_t> identity_;
};

}  // namespace troupe::cpu
