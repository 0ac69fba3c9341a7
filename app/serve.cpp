#include "app/serve.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "actors/service.hpp"
#include "app/log.hpp"
#include "app/machine.hpp"
#include "app/memory_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "net/server.hpp"

namespace troupe::app {
namespace {

using namespace std::chrono_literals;

result<actors::loaded_model> load_model(const config::settings& settings) {
  auto model = model::opened_model::open(settings.model.path, settings.model.chat_template);
  if (!model) return model.error();
  auto plan = plan_memory(**model, settings, free_memory_bytes());
  if (!plan) return plan.error();

  const cpu::cpu_options options{
      .common = {.precision = plan->precision, .kv_pages = plan->kv_pages, .threads = settings.engine.threads},
      .instructions = {}};
  auto backend = cpu::make_cpu_backend(*model, options);
  if (!backend) return backend.error();
  spdlog::info("model {} ({}): {}, {} KV pages, {} MiB", (*model)->name(), (*model)->spec().architecture,
               (*backend)->description(), plan->kv_pages, plan->kv_bytes >> 20);
  return actors::loaded_model{*model, std::move(*backend), std::string(engine::to_string(plan->precision))};
}

/// Where a client on this machine reaches the server.
std::string address(const std::string& host, std::uint16_t port) {
  std::string reachable = host;
  if (host == "0.0.0.0") reachable = "127.0.0.1";
  if (host == "::") reachable = "::1";
  if (reachable.find(':') != std::string::npos) reachable = "[" + reachable + "]";
  return "http://" + reachable + ":" + std::to_string(port);
}

void print_how_to_ask(const std::string& url, bool chat) {
  const std::string path = chat ? "/v1/chat/completions" : "/v1/completions";
  const std::string body =
      chat
          ? R"({"messages": [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}], "temperature": 0, "stream": true})"
          : R"({"prompt": "The capital of France is", "max_tokens": 32, "stream": true})";
  std::cout << "\n  curl -N " << url << path << " \\\n    -H 'Content-Type: application/json' \\\n    -d '" << body
            << "'\n\n"
            << std::flush;
}

/// Waits until the first load is over; the signal that came first, if one did.
std::optional<int> wait_for_model(const actors::service& service, termination_signals& signals) {
  while (service.health().state == actors::health_report::state_kind::loading) {
    if (auto signal = signals.wait(20ms)) return signal;
  }
  return std::nullopt;
}

/// Where there may be threads that nobody can end any more.
[[noreturn]] void end_at_once() {
  spdlog::shutdown();
  std::_Exit(1);
}

/// How long clients may take to read the ends of their answers once nothing is computed any more.
constexpr auto last_words = 2s;

/// Lets running answers end. New requests are still answered meanwhile, with 503, so that a balancer sees /ready fail.
void drain(actors::service& service, net::server& server, termination_signals& signals) {
  std::cout << "Stopping: running answers may end; a second signal ends at once." << std::endl;
  spdlog::info("draining");
  auto stopped = std::async(std::launch::async, [&] {
    server.drain();
    service.stop();
    server.stop_accepting();
    if (!server.wait_until_idle(last_words)) spdlog::warn("closing connections that have not taken their answers");
    server.stop();
  });
  while (stopped.wait_for(0ms) != std::future_status::ready)
    if (const auto second = signals.wait(20ms); second && *second != SIGHUP) {  // a closed terminal sends it twice
      spdlog::warn("ended by a second signal");
      end_at_once();
    }
  stopped.get();
  spdlog::info("stopped");
}

/// All threads of a server: what computes, reads and writes, prepares; its loader and the actors' own.
std::size_t threads_of(const config::settings& settings) {
  constexpr std::size_t others = 10;
  const std::size_t compute =
      settings.engine.threads != 0 ? settings.engine.threads : std::max(1U, std::thread::hardware_concurrency());
  return compute + settings.server.io_threads + settings.limits.preparers + others;
}

/// No more connections than there can be open files: one too many would wait unheard instead of being told.
void fit_connections(config::settings& settings) {
  const std::uint64_t own_files = 32 + 3 * std::uint64_t{settings.server.io_threads};
  const std::uint64_t files = raise_open_files();
  const std::uint64_t most = files > 2 * own_files ? files - own_files : std::max<std::uint64_t>(1, files / 2);
  if (settings.server.max_connections <= most) return;
  spdlog::warn("{} open files are allowed: there will be at most {} connections; raise the limit (ulimit -n) for {}",
               files, most, settings.server.max_connections);
  settings.server.max_connections = static_cast<std::uint32_t>(most);
}

/// To the log, and to the terminal where the log is a file.
int report(const error& failure, const config::log_settings& log) {
  if (!log.file.empty()) spdlog::error(failure.to_string());
  std::cerr << "troupe: " << failure.to_string() << std::endl;
  return 1;
}

}  // namespace

int serve(config::settings settings) {
  std::signal(SIGPIPE, SIG_IGN);  // Whoever reads our output may go away; the clients need not notice.
  termination_signals signals;    // Before the log, which has a thread.
  if (auto opened = open_log(settings.log); !opened) return report(opened.error(), {});
  if (auto enough = can_start_threads(threads_of(settings)); !enough) return report(enough.error(), settings.log);
  fit_connections(settings);
  if (auto there = model::opened_model::check_path(settings.model.path); !there)
    return report(there.error(), settings.log);  // before anybody is told that it loads

  std::promise<bool> bound;  // nobody should wait for a model whose port is taken
  const auto service = actors::service::start(
      settings, [settings, listens = bound.get_future().share()]() -> result<actors::loaded_model> {
        if (!listens.get()) return error{error_kind::cancelled, "nothing was loaded", {}};
        return load_model(settings);
      });
  std::promise<bool> promised = std::move(bound);  // broken before the service goes, should anything throw
  auto listening = net::server::listen(settings, *service);
  promised.set_value(listening.has_value());
  if (!listening) return report(listening.error(), settings.log);
  net::server& server = **listening;

  const std::string url = address(settings.server.host, server.port());
  std::cout << "Troupe listens on " << url << " and loads " << settings.model.path << std::endl;
  if (!wait_for_model(*service, signals)) {
    if (auto loaded = service->wait_until_loaded(); !loaded) {
      report(loaded.error(), settings.log);
      end_at_once();
    }
    std::cout << "Serving " << service->served_name() << " on " << url << "\n";
    print_how_to_ask(url, service->model() != nullptr && service->model()->chat() != nullptr);
    std::cout << "Log: " << (settings.log.file.empty() ? "standard error" : settings.log.file) << ". Ctrl-C stops."
              << std::endl;
    while (!signals.wait(1h)) continue;
  }
  drain(*service, server, signals);
  return 0;
}

}  // namespace troupe::app
