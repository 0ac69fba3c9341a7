#include "cpu/feed_forward.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

constexpr std::uint32_t task_columns = 128;  ///< Columns of a gate/up task.
constexpr std::uint32_t group_panels = task_columns / panel_columns;
constexpr std::uint32_t task_rows = 32;  ///< Rows of a gate/up task: its scratch stays in the level-2 cache.
constexpr std::size_t scratch_floats = std::size_t{task_rows} * 2 * task_columns;

std::uint32_t ceil_divide(std::uint32_t value, std::uint32_t by) { return (value + by - 1) / by; }

void grow(std::vector<float>& buffer, std::size_t size) {
  if (buffer.size() < size) buffer.resize(size, 0.0F);
}

}  // namespace

feed_forward::feed_forward(compute& c, const model::model_spec& spec, bool quantized)
    : compute_(c),
      spec_(spec),
      hidden_padded_(round_up(spec.hidden, group_inputs)),
      dense_middle_(spec.ffn, quantized),
      expert_middle_(spec.moe.ffn, quantized),
      shared_middle_(spec.moe.shared_ffn, quantized),
      scratch_(c.pool().threads() * scratch_floats) {}

/// Gate and up of 128 columns, then silu(gate) * up, then its codes: the whole group stays in this thread's cache.
void feed_forward::gate_up_task(const job& j, const activation_view& x, std::uint32_t group,
                                std::span<const std::uint32_t> rows, std::uint32_t first_row, float* scratch) {
  const packed_ffn& ffn = *j.ffn;
  const std::uint32_t panels = ffn.gate_up.panels / 2;
  const std::uint32_t first = group * group_panels;
  const std::uint32_t count = std::min(group_panels, panels - first);
  constexpr std::size_t stride = 2 * task_columns;
  compute_.multiply_panels(ffn.gate_up, 2 * first, 2 * (first + count), x, rows, scratch, stride);
  const std::uint32_t column = group * task_columns;
  const std::uint32_t columns = std::min(task_columns, j.middle->padded() - column);
  for (std::uint32_t r = 0; r < rows.size(); ++r) {
    const std::uint32_t target = j.middle_first + first_row + r;
    compute_.kernel().silu_panels(scratch + r * stride, count, j.middle->row(target) + column);
    j.middle->quantize(compute_.kernel(), target, column, columns);
  }
}

void feed_forward::run(std::span<const job> jobs, const activation_view& x) {
  const auto groups_of = [](const job& j) { return ceil_divide(j.ffn->gate_up.panels / 2, group_panels); };
  const auto blocks_of = [](const job& j) { return ceil_divide(static_cast<std::uint32_t>(j.rows.size()), task_rows); };
  std::uint32_t tasks = 0;
  for (const auto& j : jobs) tasks += groups_of(j) * blocks_of(j);
  compute_.pool().run(tasks, [&](std::uint32_t task, unsigned worker) {
    for (const auto& j : jobs) {
      const std::uint32_t own = groups_of(j) * blocks_of(j);
      if (task >= own) {
        task -= own;
        continue;
      }
      const std::uint32_t first_row = task % blocks_of(j) * task_rows;
      const auto rows = j.rows.subspan(first_row, std::min<std::size_t>(task_rows, j.rows.size() - first_row));
      gate_up_task(j, x, task / blocks_of(j), rows, first_row, scratch_.data() + worker * scratch_floats);
      return;
    }
  });

  std::uint32_t panels = 0;
  std::uint32_t most_rows = 0;
  for (const auto& j : jobs) {
    panels += j.ffn->down.panels;
    most_rows = std::max(most_rows, j.middle_first + static_cast<std::uint32_t>(j.rows.size()));
  }
  const auto middle_rows = compute_.all_rows(most_rows);
  const std::uint32_t chunk = compute_.panels_per_task(panels);
  tasks = 0;
  for (const auto& j : jobs) tasks += ceil_divide(j.ffn->down.panels, chunk);
  compute_.pool().run(tasks, [&](std::uint32_t task, unsigned) {
    for (const auto& j : jobs) {
      const std::uint32_t own = ceil_divide(j.ffn->down.panels, chunk);
      if (task >= own) {
        task -= own;
        continue;
      }
      const std::uint32_t first = task * chunk;
      compute_.multiply_panels(j.ffn->down, first, std::min(first + chunk, j.ffn->down.panels), j.middle->view(),
                               middle_rows.subspan(j.middle_first, j.rows.size()),
                               j.out + std::size_t{first} * panel_columns, hidden_padded_);
      return;
    }
  });
}

void feed_forward::route(const layer_weights& weights, const activation_buffer& normed, std::uint32_t rows) {
  const auto& moe = spec_.moe;
  const std::uint32_t stride = round_up(moe.experts, panel_columns);
  grow(scores_, std::size_t{rows} * stride);
  chosen_.resize(std::size_t{rows} * moe.top_k);
  chosen_weights_.resize(chosen_.size());
  grow(choice_, rows * choice_scratch(moe));
  const auto bias = std::span(weights.selection_bias).first(moe.selection_bias ? moe.experts : 0);
  const product router{&weights.router.matrix, scores_.data(), stride};
  compute_.multiply(std::span(&router, 1), normed.view(), compute_.all_rows(rows));
  compute_.for_rows(rows, [&](std::uint32_t r) {
    float* scores = scores_.data() + std::size_t{r} * stride;
    if (moe.scoring == model::router_scoring::softmax) {
      compute_.kernel().softmax(scores, moe.experts);
    } else {
      std::transform(scores, scores + moe.experts, scores, compute_.kernel().sigmoid);
    }
    const std::size_t scratch = choice_scratch(moe);
    choose_experts(moe, {scores, moe.experts}, bias, {choice_.data() + r * scratch, scratch},
                   chosen_.data() + std::size_t{r} * moe.top_k, chosen_weights_.data() + std::size_t{r} * moe.top_k);
  });
  groups_.build(chosen_, moe.top_k, moe.experts);
}

void feed_forward::combine(const layer_weights& weights, activation_buffer& normed, std::uint32_t rows, float* out,
                           std::size_t out_stride) {
  const auto& moe = spec_.moe;
  const auto& k = compute_.kernel();
  compute_.for_rows(rows, [&](std::uint32_t r) {
    // The first choice's row of results serves as the sum.
    const std::uint32_t* entries = groups_.entry_of.data() + std::size_t{r} * moe.top_k;
    const float* gates = chosen_weights_.data() + std::size_t{r} * moe.top_k;
    float* sum = results_.data() + std::size_t{entries[0]} * hidden_padded_;
    k.scale(sum, gates[0], hidden_padded_);
    for (std::uint32_t slot = 1; slot < moe.top_k; ++slot) {
      k.add_scaled(sum, results_.data() + std::size_t{entries[slot]} * hidden_padded_, gates[slot], hidden_padded_);
    }
    if (moe.shared_ffn != 0) {
      float gate = 1.0F;
      if (moe.shared_gate) {
        gate = k.sigmoid(k.dot(normed.row(r), weights.shared_gate.data(), hidden_padded_));
      }
      k.add_scaled(sum, shared_results_.data() + std::size_t{r} * hidden_padded_, gate, hidden_padded_);
    }
    k.add_scaled(out + r * out_stride, sum, spec_.residual_multiplier, hidden_padded_);
  });
}

result<void> feed_forward::add(std::uint32_t layer, const layer_weights& weights, expert_store& experts,
                               activation_buffer& normed, std::uint32_t rows, float* out, std::size_t out_stride,
                               std::span<std::uint32_t> expert_tokens) {
  jobs_.clear();
  if (!spec_.layers[layer].sparse) {
    grow(results_, std::size_t{rows} * hidden_padded_);
    dense_middle_.reserve(rows);
    jobs_.push_back({&weights.dense, compute_.all_rows(rows), &dense_middle_, 0, results_.data()});
    run(jobs_, normed.view());
    compute_.for_rows(rows, [&](std::uint32_t r) {
      compute_.kernel().add_scaled(out + r * out_stride, results_.data() + std::size_t{r} * hidden_padded_,
                                   spec_.residual_multiplier, hidden_padded_);
    });
    return {};
  }

  route(weights, normed, rows);
  active_.clear();
  for (const auto& g : groups_.groups) {
    active_.push_back(g.expert);
    expert_tokens[g.expert] = g.count;
  }
  if (auto acquired = experts.acquire(layer, active_, compute_.pool(), pinned_); !acquired) return acquired;

  const auto entries = static_cast<std::uint32_t>(groups_.tokens.size());
  grow(results_, std::size_t{entries} * hidden_padded_);
  expert_middle_.reserve(entries);
  for (std::size_t i = 0; i < groups_.groups.size(); ++i) {
    const auto& g = groups_.groups[i];
    jobs_.push_back({pinned_[i].get(), std::span<const std::uint32_t>(groups_.tokens).subspan(g.first, g.count),
                     &expert_middle_, g.first, results_.data() + std::size_t{g.first} * hidden_padded_});
  }
  if (spec_.moe.shared_ffn != 0) {
    grow(shared_results_, std::size_t{rows} * hidden_padded_);
    shared_middle_.reserve(rows);
    jobs_.push_back({&weights.shared, compute_.all_rows(rows), &shared_middle_, 0, shared_results_.data()});
  }
  run(jobs_, normed.view());
  combine(weights, normed, rows, out, out_stride);
  pinned_.clear();
  return {};
}

}  // namespace troupe::cpu
