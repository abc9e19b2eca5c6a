import pytest
from minutewheel import InvalidTask
from minutewheel.broker.limits import Limits
from minutewheel.console.names import tenant_and_id

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("key", "tenant", "meant"),
    [
        ("order-1", None, ("default", "order-1")),
        ("acme/order-1", None, ("acme", "order-1")),
        ("acme/a/b", None, ("acme", "a/b")),
        ("a/b", "acme", ("acme", "a/b")),
        ("Z\u00fcrich", None, ("default", "Z\u00fcrich")),
    ],
)
def test_which_task_is_meant(key: str, tenant: str | None, meant: tuple[str, str]) -> None:
    assert tenant_and_id(Limits(), key, tenant) == meant


@pytest.mark.parametrize(
    ("key", "tenant", "code"),
    [
        ("Zu\u0308rich", None, "bad_id"),
        ("Zu\u0308rich/x", None, "bad_tenant"),
        ("Z\u00fcrich/x", None, "bad_tenant"),
        ("x", "Zu\u0308rich", "bad_tenant"),
        ("acme/", None, "bad_id"),
        ("a\x1b[0m", None, "bad_id"),
        ("x" * 257, None, "bad_id"),
    ],
)
def test_a_name_that_no_task_can_have_is_refused_and_not_looked_for(key: str, tenant: str | None, code: str) -> None:
    """Case 62: two names that print alike never are two tenants, and never one that is silently not found."""
    with pytest.raises(InvalidTask) as refused:
        tenant_and_id(Limits(), key, tenant)
    assert refused.value.code == code
