import pytest

from daemon import DEFAULT_MODEL, PATIENT_FLAGS, TINY_DENSE, TINY_MOE, Daemon


@pytest.fixture(scope="session")
def shared_tiny():
    with Daemon(TINY_DENSE) as daemon:
        daemon.reference = daemon.complete()["choices"]
        yield daemon


@pytest.fixture
def tiny(shared_tiny):
    """A small dense model. Whatever a test does to it, it answers as before afterwards."""
    yield shared_tiny
    assert shared_tiny.process.poll() is None, shared_tiny.log_text()
    assert shared_tiny.get("/health").status == 200
    assert shared_tiny.complete()["choices"] == shared_tiny.reference


@pytest.fixture(scope="session")
def moe():
    """A small Mixture of Experts, computed in fp32."""
    with Daemon(TINY_MOE, "--precision", "fp32") as daemon:
        yield daemon


@pytest.fixture(scope="session")
def default_model():
    """What ./run serves."""
    with Daemon(DEFAULT_MODEL, *PATIENT_FLAGS) as daemon:
        yield daemon
