"""What /metrics says, read by Prometheus's own parser."""

import threading

from daemon import SLOWNESS, TINY_DENSE, Daemon

GAUGES = ["troupe:num_requests_running", "troupe:num_requests_waiting", "troupe:kv_cache_usage_perc"]
COUNTERS = ["troupe:prompt_tokens", "troupe:generation_tokens", "troupe:request_success"]
HISTOGRAMS = ["troupe:time_to_first_token_seconds", "troupe:inter_token_latency_seconds",
              "troupe:e2e_request_latency_seconds", "troupe:request_queue_time_seconds",
              "troupe:request_inference_time_seconds", "troupe:iteration_tokens_total"]


def test_the_names_that_dashboards_know(tiny):
    tiny.complete(max_tokens=4, ignore_eos=True)
    families = tiny.metrics()
    for names, kind in ((GAUGES, "gauge"), (COUNTERS, "counter"), (HISTOGRAMS, "histogram")):
        for name in names:
            assert name in families, sorted(families)
            assert families[name].type == kind


def test_the_format_is_prometheus(tiny):
    answer = tiny.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert answer.body.endswith(b"\n")
    names = [line.split()[2] for line in answer.body.decode().splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_histograms_are_cumulative(tiny):
    tiny.complete()
    for family in tiny.metrics().values():
        if family.type != "histogram":
            continue
        series = {}
        for sample in family.samples:
            labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
            if sample.name.endswith("_bucket"):
                series.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
            elif sample.name.endswith("_count"):
                series.setdefault(("count", labels), sample.value)
        for labels in [key for key in series if key[:1] != ("count",)]:
            counts = [value for _, value in sorted(series[labels])]
            assert counts == sorted(counts)
            assert counts[-1] == series[("count", labels)]


def test_tokens_are_counted(tiny):
    before = tiny.metric("troupe:generation_tokens_total"), tiny.metric("troupe:prompt_tokens_total")
    usage = tiny.complete(prompt="Hello", max_tokens=7, ignore_eos=True)["usage"]
    after = tiny.metric("troupe:generation_tokens_total"), tiny.metric("troupe:prompt_tokens_total")
    assert after[0] - before[0] == usage["completion_tokens"] == 7
    assert after[1] - before[1] == usage["prompt_tokens"]


def test_the_number_of_series_does_not_grow_with_what_clients_send(tiny):
    def series():
        return sum(len(family.samples) for family in tiny.metrics().values())
    for index in range(3):
        tiny.get(f"/nothing/{index}")
    before = series()
    for index in range(50):
        tiny.get(f"/nothing/{index}", **{"X-Request-Id": f"id{index}", "Authorization": f"Bearer {index}"})
        tiny.request(f"METHOD{index}", "/health")
    assert series() <= before + 5


def test_every_stage_has_its_four_metrics(tiny):
    families = tiny.metrics()
    staged = {name: {s.labels["actor"] for s in family.samples if "actor" in s.labels} for name, family in families.items()}
    staged = {name: stages for name, stages in staged.items() if stages}
    assert len(staged) >= 4, sorted(families)
    common = set.intersection(*staged.values())
    assert len(common) >= 4, staged


def test_a_name_that_needs_escaping(tmp_path):
    with Daemon(TINY_DENSE, "--served-model-name", 'a"b\\c\nd') as daemon:
        daemon.complete()
        labels = [s.labels.get("model_name") for f in daemon.metrics().values() for s in f.samples]
        assert 'a"b\\c\nd' in labels
        assert daemon.get("/v1/models").json()["data"][0]["id"] == 'a"b\\c\nd'


def test_the_server_answers_while_it_works(default_model):
    """A full batch is being computed; /health, /ready and /metrics answer meanwhile."""
    fields = {"max_tokens": 40 // SLOWNESS, "ignore_eos": True}
    threads = [threading.Thread(target=default_model.text, kwargs={"prompt": f"Story {i}", **fields}) for i in range(16)]
    for thread in threads:
        thread.start()
    answered = 0
    while any(thread.is_alive() for thread in threads):
        assert default_model.get("/health").status == 200
        assert default_model.metrics()
        answered += 1
    for thread in threads:
        thread.join()
    assert answered >= 5
