#include "cpu/compute.hpp"

#include <algorithm>

namespace troupe::cpu {

void compute::multiply_panels(const packed_matrix& weights, std::uint32_t first, std::uint32_t last,
                              const activation_view& x, std::span<const std::uint32_t> rows, float* out,
                              std::size_t stride) const {
  const product_arguments arguments{.weights = weights.bytes,
                                    .panel_bytes = weights.panel_bytes(),
                                    .inputs = weights.padded_inputs,
                                    .first_panel = first,
                                    .last_panel = last,
                                    .x = x,
                                    .rows = rows.data(),
                                    .row_count = static_cast<std::uint32_t>(rows.size()),
                                    .out = out,
                                    .out_stride = stride,
                                    .columns = weights.outputs - first * panel_columns};
  switch (weights.format) {
    case weight_format::f32:
      kernels_.product_f32(arguments);
      break;
    case weight_format::bf16:
      kernels_.product_bf16(arguments);
      break;
    case weight_format::s8:
      kernels_.product_s8(arguments);
      break;
    case weight_format::u4:
      kernels_.product_u4(arguments);
      break;
  }
}

void compute::multiply(std::span<const product> products, const activation_view& x,
                       std::span<const std::uint32_t> rows) const {
  std::uint32_t panels = 0;
  for (const auto& p : products) panels += p.weights->panels;
  const std::uint32_t chunk = panels_per_task(panels);
  std::uint32_t tasks = 0;
  for (const auto& p : products) tasks += (p.weights->panels + chunk - 1) / chunk;
  pool_.run(tasks, [&](std::uint32_t task, unsigned) {
    for (const auto& p : products) {
      const std::uint32_t own = (p.weights->panels + chunk - 1) / chunk;
      if (task >= own) {
        task -= own;
        continue;
      }
      const std::uint32_t first = task * chunk;
      multiply_panels(*p.weights, first, std::min(first + chunk, p.weights->panels), x, rows,
                      p.out + std::size_t{first} * panel_columns, p.stride);
      return;
    }
  });
}

}  // namespace troupe::cpu
