#include "config/load.hpp"

#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace troupe::config {
namespace {

constexpr std::size_t max_file_bytes = 1 << 20;

error at(error failure, std::string place) {
  failure.place = std::move(place);
  return failure;
}

/// "troupe.yaml:12 engine.max_batch_size"
std::string yaml_place(std::string_view file, const YAML::Mark& mark, std::string_view key) {
  std::string place(file);
  if (!mark.is_null()) place += ":" + std::to_string(mark.line + 1);
  if (!key.empty()) place += " " + std::string(key);
  return place;
}

/// The names that may follow `prefix` ("" for sections, "server." for the keys of a section).
std::vector<std::string_view> names_below(std::string_view prefix) {
  std::vector<std::string_view> names;
  for (const option& o : options()) {
    if (!o.path.starts_with(prefix)) continue;
    const std::string_view name = std::string_view(o.path).substr(prefix.size());
    const std::string_view head = name.substr(0, name.find('.'));
    if (names.empty() || names.back() != head) names.push_back(head);
  }
  return names;
}

error unknown_key(std::string place, std::string_view prefix, std::string_view key) {
  const auto names = names_below(prefix);
  const auto meant = closest(key, names);
  std::string message = prefix.empty() ? "there is no such section" : "there is no such option";
  if (!meant.empty()) {
    message += "; did you mean '" + std::string(meant) + "'?";
  } else {
    message += "; known are";
    for (const auto name : names) message += (name == names.front() ? " " : ", ") + std::string(name);
  }
  return {error_kind::invalid, message, std::move(place)};
}

/// Walks a mapping's entries once, refusing keys that are no text, that repeat or that `names_below(prefix)` lacks.
template <class Visit>
result<void> for_each_entry(const YAML::Node& node, std::string_view prefix, std::string_view file, Visit visit) {
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar())
      return error{error_kind::invalid, "a key must be a plain word", yaml_place(file, entry.first.Mark(), prefix)};
    const std::string key = entry.first.Scalar();
    const std::string place = yaml_place(file, entry.first.Mark(), std::string(prefix) + key);
    if (!seen.insert(key).second) return error{error_kind::invalid, "the key appears twice", place};
    const auto names = names_below(prefix);
    if (std::find(names.begin(), names.end(), key) == names.end()) return unknown_key(place, prefix, key);
    if (auto done = visit(key, entry.second, place); !done) return done;
  }
  return {};
}

result<void> apply_section(const YAML::Node& section, const std::string& name, std::string_view file, settings& out) {
  return for_each_entry(section, name + ".", file,
                        [&](const std::string& key, const YAML::Node& value, const std::string& place) -> result<void> {
                          const option& o = *find_option(name + "." + key);
                          if (value.IsNull())
                            return error{error_kind::invalid, "the key has no value; remove it or give one", place};
                          if (!value.IsScalar())
                            return error{error_kind::invalid, "expected one value (" + o.type + ")", place};
                          if (auto set = o.set(out, value.Scalar()); !set) return at(set.error(), place);
                          return {};
                        });
}

result<void> apply_yaml(std::string_view text, std::string_view file, settings& out) {
  try {
    const auto documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1)
      return error{error_kind::invalid, "the file holds more than one document", std::string(file)};
    if (documents.empty() || documents.front().IsNull()) return {};
    const YAML::Node& root = documents.front();
    if (!root.IsMap())
      return error{error_kind::invalid, "expected sections such as 'server:' and 'model:'",
                   yaml_place(file, root.Mark(), "")};
    return for_each_entry(
        root, "", file, [&](const std::string& key, const YAML::Node& value, const std::string& place) -> result<void> {
          if (value.IsNull()) return {};
          if (!value.IsMap())
            return error{error_kind::invalid, "expected the options of this section, one a line", place};
          return apply_section(value, key, file, out);
        });
  } catch (const YAML::Exception& failure) {
    return error{error_kind::invalid, failure.msg, yaml_place(file, failure.mark, "")};
  }
}

result<void> apply_environment(const environment& env, settings& out) {
  for (const option& o : options()) {
    const auto found = env.find(o.environment);
    if (found == env.end()) continue;
    if (auto set = o.set(out, found->second); !set) {
      error failure = at(set.error(), "environment variable " + o.environment);
      if (found->second.starts_with("tcp://"))
        failure.message += " (Kubernetes sets this variable for a service of that name: set enableServiceLinks: false)";
      return failure;
    }
  }
  return {};
}

result<void> apply_flags(const overrides& flags, settings& out) {
  for (const auto& [path, text] : flags) {
    const option* o = find_option(path);
    if (!o) return error{error_kind::internal, "there is no such option", path};
    if (auto set = o->set(out, text); !set) return at(set.error(), o->main_flag());
  }
  return {};
}

/// Rules between options.
result<void> check(const settings& s) {
  if (s.engine.step_tokens < s.engine.max_batch_size)
    return error{error_kind::invalid,
                 "must be at least engine.max_batch_size (" + std::to_string(s.engine.max_batch_size) +
                     "), because every running sequence adds a token to a step",
                 "engine.step_tokens"};
  if (s.server.host.empty()) return error{error_kind::invalid, "must not be empty", "server.host"};
  return {};
}

result<settings> merge(std::optional<std::string_view> yaml_text, std::string_view file, const environment& env,
                       const overrides& flags) {
  settings out;
  if (yaml_text)
    if (auto done = apply_yaml(*yaml_text, file, out); !done) return done.error();
  if (auto done = apply_environment(env, out); !done) return done.error();
  if (auto done = apply_flags(flags, out); !done) return done.error();
  if (auto done = check(out); !done) return done.error();
  return out;
}

result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return error{error_kind::io, "cannot be read; does it exist and may this user read it?", path.string()};
  std::string text(max_file_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof())) return error{error_kind::io, "reading failed", path.string()};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > max_file_bytes)
    return error{error_kind::too_large, "a configuration file has at most 1 MiB", path.string()};
  return text;
}

}  // namespace

environment process_environment() {
  environment env;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view pair(*entry);
    const std::size_t equals = pair.find('=');
    if (pair.starts_with("TROUPE_") && equals != std::string_view::npos)
      env.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  }
  return env;
}

std::vector<std::string> unknown_variables(const environment& env) {
  std::vector<std::string_view> known;
  for (const option& o : options()) known.push_back(o.environment);
  std::vector<std::string> sentences;
  for (const auto& [name, value] : env) {
    const bool read_elsewhere = name == "TROUPE_ISA";  // for measuring and testing: by the CPU backend
    if (!name.starts_with("TROUPE_") || read_elsewhere || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    const auto meant = closest(name, known);
    sentences.push_back("environment variable " + name + " is no option of Troupe" +
                        (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
  }
  return sentences;
}

result<settings> load(const std::optional<std::filesystem::path>& yaml, const environment& env,
                      const overrides& flags) {
  if (!yaml) return merge(std::nullopt, "", env, flags);
  auto text = read_file(*yaml);
  if (!text) return text.error();
  return merge(*text, yaml->string(), env, flags);
}

result<settings> load_text(std::string_view yaml_text, std::string_view place, const environment& env,
                           const overrides& flags) {
  return merge(yaml_text, place, env, flags);
}

}  // namespace troupe::config
