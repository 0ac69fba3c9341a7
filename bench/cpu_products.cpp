#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "cpu/activations.hpp"
#include "cpu/isa.hpp"
#include "cpu/kernels/kernels.hpp"
#include "cpu/packed_matrix.hpp"

/// Products of one expert-sized matrix (1024 x 1024) with 1 to 64 rows, one thread, per format and instruction set. The
/// weights come from a pool larger than the caches, as experts do.
namespace troupe::cpu {
namespace {

constexpr std::uint32_t size = 1024;
constexpr std::size_t pool_bytes = 128U << 20;

struct pool {
  packed_matrix matrix;
  std::vector<std::byte> bytes;
  std::size_t copies = 0;
};

pool make_pool(weight_format format) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(std::size_t{size} * size);
  for (float& v : values) v = normal(engine);
  const model::matrix_view view{.type = model::dtype::f32,
                                .rows = size,
                                .cols = size,
                                .bytes = std::as_bytes(std::span(values)),
                                .scale = {},
                                .name = "benchmark"};
  pool p{packed_shape(format, size, size), {}, 0};
  p.copies = pool_bytes / p.matrix.total_bytes();
  p.bytes.resize(p.copies * p.matrix.total_bytes());
  for (std::uint32_t panel = 0; panel < p.matrix.panels; ++panel) {
    if (!pack_panel(p.matrix, view, panel, p.bytes.data() + panel * p.matrix.panel_bytes())) std::abort();
  }
  for (std::size_t copy = 1; copy < p.copies; ++copy) {
    std::copy_n(p.bytes.begin(), p.matrix.total_bytes(),
                p.bytes.begin() + static_cast<std::ptrdiff_t>(copy * p.matrix.total_bytes()));
  }
  return p;
}

const pool& pool_of(weight_format format) {
  static const pool pools[] = {make_pool(weight_format::f32), make_pool(weight_format::bf16),
                               make_pool(weight_format::s8), make_pool(weight_format::u4)};
  return pools[static_cast<std::size_t>(format)];
}

void product(benchmark::State& state, isa tier, weight_format format) {
  if (!supported(tier)) {
    state.SkipWithError("this machine lacks the instruction set");
    return;
  }
  const kernels& k = kernels_of(tier);
  const pool& p = pool_of(format);
  const auto rows = static_cast<std::uint32_t>(state.range(0));
  activation_buffer x(size, true);
  x.reserve(rows);
  std::vector<std::uint32_t> index(rows);
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t i = 0; i < size; ++i) x.row(r)[i] = static_cast<float>((i * 7 + r) % 13) - 6.0F;
    x.quantize(k, r);
    index[r] = r;
  }
  std::vector<float> out(std::size_t{rows} * size);
  std::size_t copy = 0;
  for (auto _ : state) {
    const product_arguments arguments{.weights = p.bytes.data() + copy * p.matrix.total_bytes(),
                                      .panel_bytes = p.matrix.panel_bytes(),
                                      .inputs = size,
                                      .first_panel = 0,
                                      .last_panel = p.matrix.panels,
                                      .x = x.view(),
                                      .rows = index.data(),
                                      .row_count = rows,
                                      .out = out.data(),
                                      .out_stride = size,
                                      .columns = size};
    switch (format) {
      case weight_format::f32:
        k.product_f32(arguments);
        break;
      case weight_format::bf16:
        k.product_bf16(arguments);
        break;
      case weight_format::s8:
        k.product_s8(arguments);
        break;
      case weight_format::u4:
        k.product_u4(arguments);
        break;
    }
    benchmark::DoNotOptimize(out.data());
    copy = (copy + 1) % p.copies;
  }
  const double operations = 2.0 * size * size * rows * static_cast<double>(state.iterations());
  state.counters["GOPS"] = benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(p.matrix.total_bytes()) * static_cast<double>(state.iterations()) * 1e-9,
                         benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(product, avx2_f32, isa::avx2, weight_format::f32)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, avx2_bf16, isa::avx2, weight_format::bf16)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, avx2_s8, isa::avx2, weight_format::s8)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, avx2_u4, isa::avx2, weight_format::u4)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, avx512_s8, isa::avx512, weight_format::s8)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, avx512_u4, isa::avx512, weight_format::u4)->Arg(1)->Arg(4)->Arg(64);
BENCHMARK_CAPTURE(product, scalar_u4, isa::scalar, weight_format::u4)->Arg(1)->Arg(4);

}  // namespace
}  // namespace troupe::cpu

BENCHMARK_MAIN();
