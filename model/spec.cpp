#include "model/spec.hpp"

namespace troupe::model {

std::string_view to_string(tensor_role role) {
  switch (role) {
    case tensor_role::embedding:
      return "embedding";
    case tensor_role::final_norm:
      return "final norm";
    case tensor_role::lm_head:
      return "lm_head";
    case tensor_role::attention_norm:
      return "attention norm";
    case tensor_role::query:
      return "query projection";
    case tensor_role::key:
      return "key projection";
    case tensor_role::value:
      return "value projection";
    case tensor_role::attention_output:
      return "attention output projection";
    case tensor_role::query_bias:
      return "query bias";
    case tensor_role::key_bias:
      return "key bias";
    case tensor_role::value_bias:
      return "value bias";
    case tensor_role::attention_output_bias:
      return "attention output bias";
    case tensor_role::query_norm:
      return "query norm";
    case tensor_role::key_norm:
      return "key norm";
    case tensor_role::ffn_norm:
      return "FFN norm";
    case tensor_role::ffn_gate:
      return "FFN gate";
    case tensor_role::ffn_up:
      return "FFN up";
    case tensor_role::ffn_down:
      return "FFN down";
    case tensor_role::router:
      return "router";
    case tensor_role::router_selection_bias:
      return "router selection bias";
    case tensor_role::expert_gate:
      return "expert gate";
    case tensor_role::expert_up:
      return "expert up";
    case tensor_role::expert_down:
      return "expert down";
    case tensor_role::shared_gate_proj:
      return "shared expert gate projection";
    case tensor_role::shared_up:
      return "shared expert up";
    case tensor_role::shared_down:
      return "shared expert down";
    case tensor_role::shared_expert_gate:
      return "shared expert's gate";
  }
  return "unknown";
}

}  // namespace troupe::model
